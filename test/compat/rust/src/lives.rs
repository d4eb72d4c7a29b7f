// SPDX-License-Identifier: MIT

//! How requests travel, and what ends under a client that stays.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use azure_data_cosmos::models::ContainerProperties;
use azure_data_cosmos::FeedScope;

use crate::containers::{equal, item, read, refused, rows, Containers};
use crate::server::{Result, Server};

const LIMIT: Duration = Duration::from_secs(30);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// The SDK speaks HTTP/2 over TLS, and a request is sent once.
pub async fn once(server: &mut Server, containers: &mut Containers) -> Result<()> {
    let c = containers.create().await?;
    let reads = server.requests("item_read")?;
    let creates = server.requests("item_create")?;
    refused(404, c.read_item("a", "1", None)).await?;
    c.create_item("a", "1", item("1", "a", 1), None).await?;
    refused(409, c.create_item("a", "1", item("1", "a", 1), None)).await?;
    let answer = c.read_item("a", "1", None).await?;
    let told = answer.diagnostics();
    for request in told.requests().iter() {
        equal(
            format!("{:?}", request.transport_http_version()),
            "Http2".to_string(),
        )?;
    }
    equal(told.request_count(), 1)?;
    equal(server.requests("item_read")? - reads, 2)?;
    equal(server.requests("item_create")? - creates, 2)
}

pub async fn recreated(server: &mut Server, containers: &mut Containers) -> Result<()> {
    let c = containers.create().await?;
    c.create_item("a", "1", item("1", "a", 1), None).await?;
    let properties = c.read(None).await?.into_model()?;
    let other = server
        .client()
        .await?
        .database_client(containers.database().name().ok_or("no name")?);
    let name = properties.id.to_string();
    other
        .container_client(name.clone(), None)
        .await?
        .delete(None)
        .await?;
    other
        .create_container(ContainerProperties::new(name, "/pk".into()), None)
        .await?;
    refused(404, c.read_item("a", "1", None)).await?;
    c.create_item("a", "2", item("2", "a", 2), None).await?;
    equal(
        rows(&c, "SELECT VALUE c.n FROM c", FeedScope::full_container()).await?,
        vec![2.into()],
    )
}

pub async fn stopped(server: &mut Server, containers: &mut Containers) -> Result<()> {
    restarted(server, containers, false).await
}

pub async fn killed(server: &mut Server, containers: &mut Containers) -> Result<()> {
    restarted(server, containers, true).await
}

/// Writes while the server ends and starts again. What fails may be there or not.
async fn restarted(server: &mut Server, containers: &mut Containers, killed: bool) -> Result<()> {
    let c = containers.create().await?;
    let (acknowledged, mut told) = tokio::sync::mpsc::unbounded_channel();
    let writer = {
        let c = c.clone();
        tokio::spawn(async move {
            for n in 0i64.. {
                let id = n.to_string();
                match c.create_item("a", &id, item(&id, "a", n), None).await {
                    Ok(_) if acknowledged.send(n).is_err() => return, // enough
                    Ok(_) => {}
                    Err(_) => tokio::time::sleep(BETWEEN_ATTEMPTS).await,
                }
            }
        })
    };
    let end = Instant::now() + LIMIT;
    let mut take = async |count: usize| -> Result<BTreeSet<i64>> {
        let mut some = BTreeSet::new();
        while some.len() < count {
            let left = end.saturating_duration_since(Instant::now());
            some.insert(
                tokio::time::timeout(left, told.recv())
                    .await?
                    .ok_or("the writer ended")?,
            );
        }
        Ok(some)
    };
    let mut seen = take(50).await?;
    tokio::task::block_in_place(|| server.restart(killed))?;
    seen.extend(take(50).await?);
    drop(told);
    writer.await?;
    for n in seen {
        let id = n.to_string();
        equal(read(&c, "a", &id).await?["n"].as_i64(), Some(n))?;
    }
    Ok(())
}
