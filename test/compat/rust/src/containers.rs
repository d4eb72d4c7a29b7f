// SPDX-License-Identifier: MIT

//! Containers with fresh names, the items in them, and what is expected of answers.

use std::fmt::Debug;
use std::future::Future;

use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::models::{
    ContainerProperties, ItemResponse, PartitionKeyDefinition, ThroughputProperties,
};
use azure_data_cosmos::options::{
    ContentResponseOnWrite, CreateContainerOptions, ItemWriteOptions, OperationOptionsBuilder,
};
use azure_data_cosmos::{CosmosClient, FeedScope, Query};
use futures::TryStreamExt;
use serde_json::{json, Value};

use crate::server::Result;

pub const ONE_PARTITION: u64 = 400;
pub const FIVE_PARTITIONS: u64 = 25_000;

const DATABASE: &str = "rust";

pub struct Containers {
    client: CosmosClient,
    created: usize,
}

impl Containers {
    pub async fn new(client: CosmosClient) -> Result<Self> {
        client.create_database(DATABASE, None).await?;
        Ok(Containers { client, created: 0 })
    }

    pub fn client(&self) -> &CosmosClient {
        &self.client
    }

    pub fn database(&self) -> DatabaseClient {
        self.client.database_client(DATABASE)
    }

    /// Creates a container whose partition key is in pk.
    pub async fn create(&mut self) -> Result<ContainerClient> {
        self.create_with("/pk", ONE_PARTITION, |p| p).await
    }

    pub async fn create_with(
        &mut self,
        key: impl Into<PartitionKeyDefinition>,
        throughput: u64,
        more: impl FnOnce(ContainerProperties) -> ContainerProperties,
    ) -> Result<ContainerClient> {
        self.created += 1;
        let name = format!("c{}", self.created);
        let options = CreateContainerOptions::default()
            .with_throughput(ThroughputProperties::manual(throughput));
        self.database()
            .create_container(
                more(ContainerProperties::new(name.clone(), key.into())),
                Some(options),
            )
            .await?;
        Ok(self.database().container_client(name, None).await?)
    }
}

pub fn item(id: &str, pk: &str, n: i64) -> Value {
    json!({"id": id, "pk": pk, "n": n})
}

/// Creates the items 0 to n-1 under three partition keys.
pub async fn fill(c: &ContainerClient, n: i64) -> Result<()> {
    for i in 0..n {
        let pk = format!("p{}", i % 3);
        let id = i.to_string();
        c.create_item(pk.clone(), &id, item(&id, &pk, i), None)
            .await?;
    }
    Ok(())
}

/// Reads an item.
pub async fn read(c: &ContainerClient, pk: &str, id: &str) -> Result<Value> {
    Ok(c.read_item(pk.to_string(), id, None).await?.into_model()?)
}

/// Asks that a write is answered with the item.
pub fn with_body() -> ItemWriteOptions {
    let operation = OperationOptionsBuilder::new()
        .with_content_response_on_write(ContentResponseOnWrite::Enabled)
        .build();
    ItemWriteOptions::default().with_operation_options(operation)
}

/// Gives all rows of a query, in its order.
pub async fn rows(
    c: &ContainerClient,
    query: impl Into<Query>,
    scope: FeedScope,
) -> Result<Vec<Value>> {
    Ok(c.query_items(query, scope, None)
        .await?
        .try_collect()
        .await?)
}

pub fn equal<T: PartialEq + Debug>(got: T, want: T) -> Result<()> {
    if got != want {
        return Err(format!("got {got:?}, want {want:?}").into());
    }
    Ok(())
}

/// Expects that a request fails with a status.
pub async fn refused(
    status: u16,
    request: impl Future<Output = azure_data_cosmos::Result<ItemResponse>>,
) -> Result<()> {
    match request.await {
        Ok(_) => Err(format!("it succeeded, and is to fail with {status}").into()),
        Err(e) => equal(u16::from(e.status()), status),
    }
}
