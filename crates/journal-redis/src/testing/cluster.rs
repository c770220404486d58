//! A cluster of three nodes, without replicas.

use super::server::{Server, Setup};
use super::until;

/// Three nodes that share the slots.
#[derive(Debug)]
pub struct Cluster {
    /// The nodes; each has a third of the slots, in this order.
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// Starts the nodes, and waits until each knows that all slots are served.
    ///
    /// # Panics
    /// When they do not start, or do not agree.
    pub async fn new() -> Self {
        Self::with(Setup::new()).await
    }

    /// The same with more set up.
    ///
    /// # Panics
    /// As [`Cluster::new`].
    pub async fn with(setup: Setup) -> Self {
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            nodes.push(start(&setup).await);
        }
        let cluster = Self { nodes };
        // What `redis-cli --cluster create` does, without its pauses of a second.
        for (number, node) in cluster.nodes.iter().enumerate() {
            let first = SLOTS * number / NODES;
            let last = SLOTS * (number + 1) / NODES - 1;
            let (first, last) = (first.to_string(), last.to_string());
            node.cli(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]).await;
            // Two nodes with one epoch would have to settle that first.
            let epoch = (number + 1).to_string();
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await;
        }
        for other in &cluster.nodes[1..] {
            let (port, bus) = (other.port().to_string(), bus_port(other).to_string());
            let meet = ["CLUSTER", "MEET", "127.0.0.1", &port, &bus];
            cluster.nodes[0].cli(&meet).await;
        }
        for node in &cluster.nodes {
            until("the nodes agree", async || {
                let info = node.cli(&["CLUSTER", "INFO"]).await;
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            })
            .await;
        }
        cluster
    }
}

async fn start(setup: &Setup) -> Server {
    setup
        .clone()
        .config("cluster-enabled", "yes")
        .config("cluster-node-timeout", "2000")
        .config("cluster-port", &super::server::free_port().to_string())
        .start()
        .await
}

/// The port on which nodes talk to each other. It is by default the other one and 10,000, which may not exist.
fn bus_port(node: &Server) -> u16 {
    let config = std::fs::read_to_string(node.folder().join("redis.conf"));
    let config = config.expect("it was written at the start");
    let port = config
        .lines()
        .find_map(|line| line.strip_prefix("cluster-port "));
    port.and_then(|port| port.parse().ok())
        .expect("it was set up")
}

const NODES: usize = 3;
const SLOTS: usize = 16384;
