// SPDX-License-Identifier: MIT

//! Queries, and the change feed.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::ContinuationToken;
use azure_data_cosmos::models::{ChangeFeedPolicy, TimeToLive};
use azure_data_cosmos::options::{
    ChangeFeedMode, ChangeFeedOptions, ChangeFeedStartFrom, MaxItemCountHint, QueryOptions,
    QueryPlanMode,
};
use azure_data_cosmos::{FeedScope, Query};
use futures::{StreamExt, TryStreamExt};
use serde_json::{json, Value};

use crate::containers::{equal, fill, item, rows, Containers, FIVE_PARTITIONS};
use crate::server::{Result, Server};

const ITEMS: i64 = 30;
const PARTITIONS: usize = 5;
/// How many pages without a change are read before a feed is at its end: some more than
/// it has partitions.
const EMPTY_PAGES: usize = 2 * PARTITIONS;

pub async fn one_key(_: &mut Server, containers: &mut Containers) -> Result<()> {
    let c = containers.create().await?;
    fill(&c, 20).await?;
    let query = || {
        Query::from("SELECT VALUE c.n FROM c WHERE c.n > @least ORDER BY c.n DESC")
            .with_parameter("@least", 2)
    };
    let want: Vec<Value> = [19, 16, 13, 10, 7, 4].map(Value::from).to_vec();
    equal(
        rows(&c, query()?, FeedScope::partition("p1")).await?,
        want.clone(),
    )?;

    // Page by page, each from the continuation of the one before.
    let mut seen = Vec::new();
    let mut continuation: Option<ContinuationToken> = None;
    loop {
        let mut options = paged(2);
        if let Some(token) = continuation {
            options = options.with_continuation_token(token);
        }
        let mut pages = c
            .query_items::<Value>(query()?, FeedScope::partition("p1"), Some(options))
            .await?
            .into_pages();
        let Some(page) = pages.next().await else {
            break;
        };
        let page = page?.into_items();
        equal(page.len() <= 2, true)?;
        seen.extend(page);
        if seen.len() >= want.len() {
            break;
        }
        continuation = Some(pages.to_continuation_token()?);
    }
    equal(seen, want)
}

pub async fn several_partitions(_: &mut Server, containers: &mut Containers) -> Result<()> {
    let c = containers
        .create_with("/pk", FIVE_PARTITIONS, |p| p)
        .await?;
    for n in 0..ITEMS {
        let id = n.to_string();
        c.create_item(format!("p{n}"), &id, item(&id, &format!("p{n}"), n), None)
            .await?;
    }
    let ranges = c.read_feed_ranges(None).await?;
    equal(ranges.len(), PARTITIONS)?;
    let mut by_range = 0;
    for range in ranges {
        by_range += rows(&c, "SELECT VALUE c.n FROM c", FeedScope::range(range))
            .await?
            .len();
    }
    equal(by_range, ITEMS as usize)?;
    // The SDK adds up nothing over partitions, and says so to the server, which refuses it.
    let sum = "SELECT VALUE SUM(c.n) FROM c";
    equal(
        rows(&c, sum, FeedScope::partition("p7")).await?,
        vec![json!(7)],
    )?;
    equal(
        rows(&c, sum, FeedScope::full_container())
            .await
            .is_err_and(|e| e.to_string().contains("Aggregate")),
        true,
    )?;

    // The SDK plans what it can by itself, and asks the server about the rest, or about all.
    for mode in [QueryPlanMode::LocalPreferred, QueryPlanMode::GatewayOnly] {
        for (query, want) in [
            (
                "SELECT VALUE c.n FROM c WHERE c.n >= 25 ORDER BY c.n",
                json!([25, 26, 27, 28, 29]),
            ),
            (
                "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 2 LIMIT 3",
                json!([27, 26, 25]),
            ),
            ("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n", json!([0, 1])),
            (
                "SELECT VALUE c.n FROM c WHERE c.pk IN ('p3', 'p17') ORDER BY c.n",
                json!([3, 17]),
            ),
        ] {
            let options = paged(7).with_query_plan_mode(mode);
            let got: Vec<Value> = c
                .query_items(query, FeedScope::full_container(), Some(options))
                .await?
                .try_collect()
                .await?;
            equal(Value::from(got), want).map_err(|e| format!("{query}: {e}"))?;
        }
    }
    Ok(())
}

pub async fn hierarchical(_: &mut Server, containers: &mut Containers) -> Result<()> {
    let c = containers
        .create_with(("/tenant", "/user", "/session"), FIVE_PARTITIONS, |p| p)
        .await?;
    for n in 0..12 {
        let (tenant, user, session) = (
            format!("t{}", n % 2),
            format!("u{}", n % 3),
            format!("s{n}"),
        );
        let i = json!({"id": n.to_string(), "tenant": tenant, "user": user, "session": session, "n": n});
        c.create_item((tenant, user, session), &n.to_string(), i, None)
            .await?;
    }
    let read: Value = c
        .read_item(("t1", "u1", "s7"), "7", None)
        .await?
        .into_model()?;
    equal(read["n"].clone(), json!(7))?;
    let query = "SELECT VALUE c.n FROM c ORDER BY c.n";
    equal(
        rows(&c, query, FeedScope::partition("t0")).await?,
        [0, 2, 4, 6, 8, 10].map(Value::from).to_vec(),
    )?;
    equal(
        rows(&c, query, FeedScope::partition(("t1", "u0"))).await?,
        [3, 9].map(Value::from).to_vec(),
    )?;
    equal(
        rows(&c, query, FeedScope::partition(("t1", "u0", "s9"))).await?,
        vec![json!(9)],
    )
}

pub async fn changes(_: &mut Server, containers: &mut Containers) -> Result<()> {
    let c = containers
        .create_with("/pk", FIVE_PARTITIONS, |p| p)
        .await?;
    fill(&c, 9).await?;
    c.upsert_item("p1", "4", item("4", "p1", 40), None).await?;
    c.delete_item("p2", "5", None).await?;
    let (seen, end) = changed(&c, ChangeFeedStartFrom::Beginning, None).await?;
    equal(seen, BTreeSet::from([0, 1, 2, 3, 6, 7, 8, 40]))?;
    c.upsert_item("p0", "9", item("9", "p0", 9), None).await?;
    let (seen, _) = changed(&c, ChangeFeedStartFrom::Beginning, Some(end)).await?;
    equal(seen, BTreeSet::from([9]))
}

/// Reads the feed to its present end.
async fn changed(
    c: &ContainerClient,
    from: ChangeFeedStartFrom,
    after: Option<ContinuationToken>,
) -> Result<(BTreeSet<i64>, ContinuationToken)> {
    let mut options = ChangeFeedOptions::default();
    if let Some(token) = after {
        options = options.with_continuation_token(token);
    }
    let mut pages = c
        .query_change_feed::<Value>(FeedScope::full_container(), from, Some(options))
        .await?;
    let mut seen = BTreeSet::new();
    let mut empty = 0;
    while empty < EMPTY_PAGES {
        let page = pages.next().await.ok_or("the feed ended")??;
        empty = if page.items().is_empty() {
            empty + 1
        } else {
            0
        };
        seen.extend(
            page.items()
                .iter()
                .filter_map(|change| change.current()?["n"].as_i64()),
        );
    }
    Ok((seen, pages.to_continuation_token()?))
}

pub async fn all_versions(server: &mut Server, containers: &mut Containers) -> Result<()> {
    server.clock(r#"{"freeze":true}"#)?;
    let policy = ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600));
    let c = containers
        .create_with("/pk", FIVE_PARTITIONS, |p| {
            p.with_default_ttl(TimeToLive::NoDefault)
                .with_change_feed_policy(policy)
        })
        .await?;
    let options = ChangeFeedOptions::default().with_mode(ChangeFeedMode::AllVersionsAndDeletes);
    let mut pages = c
        .query_change_feed::<Value>(
            FeedScope::full_container(),
            ChangeFeedStartFrom::Now,
            Some(options),
        )
        .await?;
    for _ in 0..EMPTY_PAGES {
        equal(
            pages.next().await.ok_or("the feed ended")??.items().len(),
            0,
        )?; // so that each partition has begun
    }
    c.create_item("a", "1", item("1", "a", 1), None).await?;
    c.upsert_item("a", "1", item("1", "a", 2), None).await?;
    c.delete_item("a", "1", None).await?;
    let mut brief = item("brief", "a", 3);
    brief["ttl"] = json!(5);
    c.create_item("a", "brief", brief, None).await?;
    server.clock(r#"{"advance":"5s"}"#)?;
    let mut seen = Vec::new();
    let mut empty = 0;
    while empty < EMPTY_PAGES {
        let page = pages.next().await.ok_or("the feed ended")??;
        empty = if page.items().is_empty() {
            empty + 1
        } else {
            0
        };
        for change in page.items() {
            let metadata = change.metadata().ok_or("a change has no metadata")?;
            let kind = format!(
                "{:?}",
                metadata.operation_type().ok_or("a change has no kind")?
            );
            seen.push((
                kind.to_lowercase(),
                metadata.time_to_live_expired().unwrap_or(false),
            ));
        }
    }
    let want = [
        ("create", false),
        ("replace", false),
        ("delete", false),
        ("create", false),
        ("delete", true),
    ];
    equal(
        seen,
        want.map(|(kind, expired)| (kind.to_string(), expired))
            .to_vec(),
    )?;
    server.clock(r#"{"release":true}"#)
}

fn paged(items: u32) -> QueryOptions {
    let hint =
        NonZeroU32::new(items).map_or(MaxItemCountHint::ServerDecides, MaxItemCountHint::Limit);
    QueryOptions::default().with_max_item_count(hint)
}
