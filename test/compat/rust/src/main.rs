// SPDX-License-Identifier: MIT

//! Drives the real binary with the Rust SDK as a program of a user would: with the
//! settings that the SDK has by itself, over HTTPS and HTTP/2, and with the server's
//! certificate trusted.

mod containers;
mod feeds;
mod items;
mod lives;
mod server;

use containers::Containers;
use server::{Result, Server};

async fn all(server: &mut Server) -> Result<()> {
    let mut containers = Containers::new(server.client().await?).await?;
    macro_rules! check {
        ($what:literal, $check:path) => {
            $check(server, &mut containers)
                .await
                .map_err(|e| format!("{}: {e}", $what))?;
            println!("ok  {}", $what);
        };
    }
    check!("databases are created, found and deleted", items::databases);
    check!(
        "containers are replaced, and have unique keys and throughput",
        items::containers
    );
    check!(
        "items are created, read, replaced and deleted",
        items::items
    );
    check!(
        "a write or a read happens only if its condition holds",
        items::conditions
    );
    check!("a patch changes what it names", items::patches);
    check!("a batch is done, or not at all", items::batches);
    check!("items expire on the millisecond", items::expiry);
    check!(
        "a query of one key gives what matches, in order, page by page",
        feeds::one_key
    );
    check!(
        "a query of five partitions is merged by the SDK",
        feeds::several_partitions
    );
    check!(
        "the front of a hierarchical key is enough for a query",
        feeds::hierarchical
    );
    check!(
        "the change feed has each item as it is now, and goes on",
        feeds::changes
    );
    check!(
        "the change feed has all versions, deletes and expiries",
        feeds::all_versions
    );
    check!("a request is sent once, over HTTP/2", lives::once);
    check!(
        "a container that is created again under its client is the new one",
        lives::recreated
    );
    check!(
        "a server that stops and starts again loses no client",
        lives::stopped
    );
    check!(
        "a server that is killed loses nothing that was acknowledged",
        lives::killed
    );
    Ok(())
}

fn main() -> Result<()> {
    let mut server = Server::start()?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(all(&mut server))?;
    server.stop()
}
