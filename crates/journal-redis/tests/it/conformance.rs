//! The Redis backend keeps the contract.

use streamweld_journal::conformance::{self, Case};
use streamweld_journal::{Call, for_each_case};
use streamweld_journal_redis::testing::{Cluster, Server};

use crate::cluster;
use crate::connect::connect;

macro_rules! redis {
    ($($case:ident)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                let server = Server::new().await;
                let case: Case = |journal| Call::under_way(conformance::$case(journal));
                case(&connect(&server).await).await;
            }
        )*
    };
}
for_each_case!(redis);

#[tokio::test]
async fn cases_can_share_a_backend() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    for (_, case) in conformance::CASES {
        case(&journal).await;
    }
}

#[tokio::test]
async fn a_cluster_keeps_the_contract() {
    let nodes = Cluster::new().await;
    let journal = cluster::connect(&nodes).await;
    for (_, case) in conformance::CASES {
        case(&journal).await;
    }
    // Each has had some of it.
    for node in &nodes.nodes {
        assert_ne!(node.cli(&["DBSIZE"]).await, "0");
    }
}
