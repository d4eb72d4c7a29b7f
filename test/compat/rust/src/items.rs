// SPDX-License-Identifier: MIT

//! Databases and containers, items with their conditions, patch, batch and expiry.

use azure_data_cosmos::models::{
    ContainerProperties, CosmosNumber, PatchInstructions, PatchOperation, ThroughputProperties,
    TimeToLive, UniqueKey, UniqueKeyPolicy,
};
use azure_data_cosmos::options::{
    ItemReadOptions, ItemWriteOptions, PatchItemOptions, PatchStrategy, Precondition,
};
use azure_data_cosmos::{FeedScope, TransactionalBatch};
use futures::TryStreamExt;
use serde_json::{json, Value};

use crate::containers::{equal, item, read, refused, rows, with_body, Containers, ONE_PARTITION};
use crate::server::{Result, Server};

pub async fn databases(_: &mut Server, containers: &mut Containers) -> Result<()> {
    let client = containers.client().clone();
    client.create_database("another", None).await?;
    let found: Vec<_> = client
        .query_databases("SELECT * FROM c WHERE c.id = 'another'", None)
        .await?
        .try_collect()
        .await?;
    equal(found.len(), 1)?;
    let database = client.database_client("another");
    equal(
        database.read(None).await?.into_model()?.id,
        Some("another".to_string()),
    )?;
    database.delete(None).await?;
    match database.read(None).await {
        Ok(_) => Err("a database that was deleted is read".into()),
        Err(e) => equal(u16::from(e.status()), 404),
    }
}

pub async fn containers(_: &mut Server, containers: &mut Containers) -> Result<()> {
    let unique = UniqueKeyPolicy::default().with_unique_key(UniqueKey::default().with_path("/n"));
    let c = containers
        .create_with("/pk", ONE_PARTITION, |p| p.with_unique_key_policy(unique))
        .await?;
    let mut properties: ContainerProperties = c.read(None).await?.into_model()?;
    equal(properties.default_ttl.clone(), TimeToLive::Forever)?;
    properties.default_ttl = TimeToLive::NoDefault;
    c.replace(properties, None).await?;
    equal(
        c.read(None).await?.into_model()?.default_ttl,
        TimeToLive::NoDefault,
    )?;

    c.create_item("a", "1", item("1", "a", 1), None).await?;
    refused(409, c.create_item("a", "2", item("2", "a", 1), None)).await?;
    c.create_item("b", "2", item("2", "b", 1), None).await?;

    equal(
        c.read_throughput(None).await?.and_then(|t| t.throughput()),
        Some(ONE_PARTITION),
    )?;
    c.begin_replace_throughput(ThroughputProperties::manual(2 * ONE_PARTITION), None)
        .await?
        .await?;
    equal(
        c.read_throughput(None).await?.and_then(|t| t.throughput()),
        Some(2 * ONE_PARTITION),
    )?;
    c.delete(None).await?;
    refused(404, c.read_item("a", "1", None)).await
}

pub async fn items(_: &mut Server, containers: &mut Containers) -> Result<()> {
    let c = containers.create().await?;
    let text = json!({"id": "1", "pk": "a", "n": 1, "text": "é ✓ \u{1F41D}", "list": [1, 2.5, -3, null, true, {"in": []}], "big": 9007199254740991i64});
    let created: Value = c
        .create_item("a", "1", &text, Some(with_body()))
        .await?
        .into_model()?;
    equal(read(&c, "a", "1").await?, created.clone())?;
    for (name, value) in text.as_object().ok_or("no object")? {
        equal(&created[name], value)?;
    }
    let answer = c.replace_item("a", "1", item("1", "a", 2), None).await?;
    equal(u16::from(answer.status()), 200)?;
    equal(answer.into_body().is_empty(), true)?; // the SDK asks for no body unless it is told to
    equal(
        u16::from(
            c.upsert_item("a", "1", item("1", "a", 3), None)
                .await?
                .status(),
        ),
        200,
    )?;
    equal(
        u16::from(
            c.upsert_item("a", "2", item("2", "a", 4), None)
                .await?
                .status(),
        ),
        201,
    )?;
    equal(read(&c, "a", "1").await?["n"].clone(), json!(3))?;
    refused(409, c.create_item("a", "1", item("1", "a", 1), None)).await?;
    c.delete_item("a", "1", None).await?;
    refused(404, c.read_item("a", "1", None)).await?;
    refused(404, c.replace_item("a", "1", item("1", "a", 1), None)).await?;
    refused(404, c.delete_item("a", "1", None)).await
}

pub async fn conditions(_: &mut Server, containers: &mut Containers) -> Result<()> {
    let c = containers.create().await?;
    let created = c.create_item("a", "1", item("1", "a", 1), None).await?;
    let first = created.headers().etag().ok_or("no etag")?.clone();
    let replaced = c
        .replace_item(
            "a",
            "1",
            item("1", "a", 2),
            Some(
                ItemWriteOptions::default()
                    .with_precondition(Precondition::if_match(first.clone())),
            ),
        )
        .await?;
    let second = replaced.headers().etag().ok_or("no etag")?.clone();
    let stale = || {
        Some(ItemWriteOptions::default().with_precondition(Precondition::if_match(first.clone())))
    };
    refused(412, c.replace_item("a", "1", item("1", "a", 3), stale())).await?;
    refused(412, c.upsert_item("a", "1", item("1", "a", 3), stale())).await?;
    refused(412, c.delete_item("a", "1", stale())).await?;
    equal(read(&c, "a", "1").await?["n"].clone(), json!(2))?;
    let unless = |etag| {
        Some(ItemReadOptions::default().with_precondition(Precondition::if_none_match(etag)))
    };
    equal(
        u16::from(c.read_item("a", "1", unless(first)).await?.status()),
        200,
    )?;
    match c.read_item("a", "1", unless(second.clone())).await {
        Ok(answer) => equal(u16::from(answer.status()), 304)?,
        Err(e) => equal(u16::from(e.status()), 304)?,
    }
    c.delete_item(
        "a",
        "1",
        Some(ItemWriteOptions::default().with_precondition(Precondition::if_match(second))),
    )
    .await?;
    Ok(())
}

/// A patch is sent to the server as it is, or becomes a read and a replace of the SDK's
/// own, which notes in the item that it was done.
pub async fn patches(server: &mut Server, containers: &mut Containers) -> Result<()> {
    let c = containers.create().await?;
    c.create_item(
        "a",
        "1",
        json!({"id": "1", "pk": "a", "n": 1, "tags": ["x"], "old": true}),
        None,
    )
    .await?;
    let sent = server.requests("item_patch")?;
    let change = PatchInstructions::new()
        .with_operation(PatchOperation::increment("/n", CosmosNumber::from(4i64)))
        .with_operation(PatchOperation::add("/tags/-", json!("y")))
        .with_operation(PatchOperation::set("/text", json!("é")))
        .with_operation(PatchOperation::remove("/old"));
    for (strategy, n, tags, patches) in [
        (PatchStrategy::ServerSide, 5, json!(["x", "y"]), 1),
        (PatchStrategy::ClientSide, 9, json!(["x", "y", "y"]), 1),
    ] {
        let options = PatchItemOptions::default().with_strategy(strategy);
        c.patch_item("a", "1", change.clone(), Some(options))
            .await?;
        let patched = read(&c, "a", "1").await?;
        equal(patched["n"].clone(), json!(n))?;
        equal(patched["tags"].clone(), tags)?;
        equal(patched["text"].clone(), json!("é"))?;
        equal(patched.get("old"), None)?;
        equal(server.requests("item_patch")? - sent, patches)?;
        let mut back = patched.clone();
        back["old"] = json!(true);
        c.replace_item("a", "1", back, None).await?;
    }
    let stale = Precondition::if_match("\"00000000-0000-0000-0000-000000000000\"");
    let options = PatchItemOptions::default()
        .with_strategy(PatchStrategy::ServerSide)
        .with_precondition(stale);
    refused(412, c.patch_item("a", "1", change.clone(), Some(options))).await?;
    refused(404, c.patch_item("a", "2", change, None)).await
}

pub async fn batches(_: &mut Server, containers: &mut Containers) -> Result<()> {
    let c = containers.create().await?;
    let batch = TransactionalBatch::new("a")
        .create_item(item("1", "a", 1))?
        .upsert_item(item("2", "a", 2), None)?
        .replace_item("1", item("1", "a", 3), None)?
        .read_item("1", None)
        .delete_item("2", None);
    let done = c
        .execute_transactional_batch(batch, None)
        .await?
        .into_model()?;
    let statuses: Vec<u16> = done.results().iter().map(|r| r.status_code()).collect();
    equal(statuses, vec![201, 201, 200, 200, 204])?;
    let seen: Value = done.results()[3]
        .into_model()?
        .ok_or("a read of a batch has no item")?;
    equal(seen["n"].clone(), json!(3))?;

    let batch = TransactionalBatch::new("a")
        .create_item(item("3", "a", 3))?
        .create_item(item("1", "a", 1))?;
    let undone = c.execute_transactional_batch(batch, None).await?;
    let statuses: Vec<u16> = undone
        .into_model()?
        .results()
        .iter()
        .map(|r| r.status_code())
        .collect();
    equal(statuses, vec![424, 409])?;
    refused(404, c.read_item("a", "3", None)).await
}

pub async fn expiry(server: &mut Server, containers: &mut Containers) -> Result<()> {
    server.clock(r#"{"freeze":true}"#)?;
    let c = containers
        .create_with("/pk", ONE_PARTITION, |p| p.with_default_ttl(5))
        .await?;
    for (id, n, ttl) in [
        ("inherits", 1, None),
        ("shorter", 2, Some(2)),
        ("never", 3, Some(-1)),
    ] {
        let mut i = item(id, "a", n);
        if let Some(ttl) = ttl {
            i["ttl"] = json!(ttl);
        }
        c.create_item("a", id, i, None).await?;
    }
    server.clock(r#"{"advance":"1999ms"}"#)?;
    read(&c, "a", "shorter").await?;
    server.clock(r#"{"advance":"1ms"}"#)?;
    refused(404, c.read_item("a", "shorter", None)).await?;
    refused(
        404,
        c.replace_item("a", "shorter", item("shorter", "a", 2), None),
    )
    .await?;
    c.upsert_item("a", "inherits", item("inherits", "a", 1), None)
        .await?; // its time begins again
    server.clock(r#"{"advance":"4999ms"}"#)?;
    read(&c, "a", "inherits").await?;
    server.clock(r#"{"advance":"1ms"}"#)?;
    refused(404, c.read_item("a", "inherits", None)).await?;
    equal(
        rows(&c, "SELECT VALUE c.n FROM c", FeedScope::full_container()).await?,
        vec![json!(3)],
    )?;
    c.create_item("a", "inherits", item("inherits", "a", 4), None)
        .await?; // its name is free
    server.clock(r#"{"release":true}"#)
}
