//! A cluster of three nodes, with or without replicas.

use super::server::{PORTS, Server, Setup, free_port};
use super::until;

/// Three nodes that share the slots.
#[derive(Debug)]
pub struct Cluster {
    /// The nodes; each has a third of the slots at first, in this order.
    pub nodes: Vec<Server>,
    /// For each node one that takes over when it is gone, if there are any.
    pub replicas: Vec<Server>,
    password: Option<String>,
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
        let cluster = Self {
            nodes,
            replicas: Vec::new(),
            password: setup.password_text(),
        };
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
            cluster.meet(other).await;
        }
        cluster.agree(NODES).await;
        cluster.notice_after(CALM).await;
        cluster
    }

    /// The same with a replica for each node.
    ///
    /// # Panics
    /// As [`Cluster::new`].
    pub async fn with_replicas(setup: Setup) -> Self {
        let mut cluster = Self::with(setup.clone()).await;
        cluster.notice_soon().await;
        for number in 0..NODES {
            let replica = start(&setup).await;
            cluster.meet(&replica).await;
            let primary = cluster.nodes[number].cli(&["CLUSTER", "MYID"]).await;
            until("the replica knows its primary", async || {
                replica.cli(&["CLUSTER", "REPLICATE", &primary]).await == "OK"
            })
            .await;
            replica.wait_replicating().await;
            cluster.replicas.push(replica);
        }
        cluster.agree(2 * NODES).await;
        cluster.notice_after(CALM).await;
        cluster
    }

    /// The URL by which the journal finds it, with its password and only one node.
    #[must_use]
    pub fn url(&self) -> String {
        let login = self.password.as_ref();
        let login = login.map_or_else(String::new, |password| format!(":{password}@"));
        format!("redis+cluster://{login}{}", self.nodes[0].address())
    }

    /// Which of the nodes has the slot of a key.
    ///
    /// # Panics
    /// When none says that it does.
    pub async fn owner(&self, key: &str) -> usize {
        for (number, node) in self.nodes.iter().enumerate() {
            if !node.cli(&["EXISTS", key]).await.starts_with("MOVED") {
                return number;
            }
        }
        panic!("nobody has the slot");
    }

    /// Moves the slot of a key to another node, with everything in it, as a reshard does.
    pub async fn move_slot(&self, key: &str, to: usize) {
        let under_way = self.begin_move(key, to).await;
        self.move_keys(&under_way).await;
        self.end_move(&under_way).await;
    }

    /// Begins to move the slot of a key: what is made there from now on is made at the other node.
    pub async fn begin_move(&self, key: &str, to: usize) -> Move {
        let slot = self.nodes[0].cli(&["CLUSTER", "KEYSLOT", key]).await;
        let from = self.owner(key).await;
        let id = async |node: usize| self.nodes[node].cli(&["CLUSTER", "MYID"]).await;
        let (source, target) = (id(from).await, id(to).await);
        let set = async |node: usize, how: &str, id: &str| {
            let command = ["CLUSTER", "SETSLOT", &slot, how, id];
            assert_eq!(self.nodes[node].cli(&command).await, "OK");
        };
        set(to, "IMPORTING", &source).await;
        set(from, "MIGRATING", &target).await;
        Move {
            slot,
            from,
            to,
            target,
        }
    }

    /// Moves what is in the slot.
    pub async fn move_keys(&self, under_way: &Move) {
        let Move { slot, from, to, .. } = under_way;
        let port = self.nodes[*to].port().to_string();
        loop {
            let all = ["CLUSTER", "GETKEYSINSLOT", slot, "100"];
            let keys = self.nodes[*from].cli(&all).await;
            if keys.is_empty() {
                return;
            }
            for key in keys.lines() {
                let migrate = ["MIGRATE", "127.0.0.1", &port, key, "0", "5000"];
                assert_eq!(self.nodes[*from].cli(&migrate).await, "OK");
            }
        }
    }

    /// The slot is at the other node now. The third is told as well: if it were to hear it from the two only, slots that
    /// move on at once could make it believe the older claim, and spread that.
    pub async fn end_move(&self, under_way: &Move) {
        let Move {
            slot,
            from,
            to,
            target,
        } = under_way;
        let others = (0..self.nodes.len()).filter(|node| node != to && node != from);
        for node in [*to, *from].into_iter().chain(others) {
            let command = ["CLUSTER", "SETSLOT", slot, "NODE", target];
            assert_eq!(self.nodes[node].cli(&command).await, "OK");
        }
    }

    /// From now on the others notice within a few seconds that a node is gone. Before, they are as patient as a busy
    /// machine needs.
    pub async fn notice_soon(&self) {
        self.notice_after(SOON).await;
    }

    async fn notice_after(&self, millis: &str) {
        for node in self.nodes.iter().chain(&self.replicas) {
            let set = ["CONFIG", "SET", "cluster-node-timeout", millis];
            assert_eq!(node.cli(&set).await, "OK");
        }
    }

    async fn meet(&self, other: &Server) {
        let (port, bus) = (other.port().to_string(), bus_port(other).to_string());
        let meet = ["CLUSTER", "MEET", "127.0.0.1", &port, &bus];
        self.nodes[0].cli(&meet).await;
    }

    async fn agree(&self, count: usize) {
        let known = format!("cluster_known_nodes:{count}");
        for node in self.nodes.iter().chain(&self.replicas) {
            until("the nodes agree", async || {
                let info = node.cli(&["CLUSTER", "INFO"]).await;
                info.contains("cluster_state:ok") && info.contains(&known)
            })
            .await;
        }
    }
}

/// A slot that is being moved.
#[derive(Debug)]
pub struct Move {
    slot: String,
    from: usize,
    to: usize,
    target: String,
}

async fn start(setup: &Setup) -> Server {
    // Its second port may be taken as well.
    for _ in 0..PORTS {
        let setup = setup
            .clone()
            .config("cluster-enabled", "yes")
            .config("cluster-node-timeout", SOON)
            .config("cluster-port", &free_port().to_string());
        if let Some(server) = setup.try_start().await {
            return server;
        }
    }
    panic!("no free port");
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

/// Milliseconds without a word after which a node is taken for gone.
const SOON: &str = "2000";
const CALM: &str = "15000";
const NODES: usize = 3;
const SLOTS: usize = 16384;
