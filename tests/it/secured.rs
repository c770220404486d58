//! TLS on both listeners, over real sockets and with certificates of our own (protocol.md 12.7).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use streamweld_mock::{Mock, MockConfig, Script};
use streamweld_tests::{CHAT, Client, Process, patience};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Duration, sleep};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A folder with an authority, and what it has certified.
struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let name = format!("streamweld-secured-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        let authority = Self {
            folder,
            issuer: Issuer::new(params, key),
        };
        authority.write("ca", &certificate.pem());
        authority.certify("server");
        authority
    }

    /// Writes a certificate for this machine, and its key.
    fn certify(&self, name: &str) {
        let key = KeyPair::generate().expect("a key");
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("names");
        let certificate = params.signed_by(&key, &self.issuer);
        let certificate = certificate.expect("a certificate");
        self.write(&format!("{name}.crt"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    fn write(&self, name: &str, text: &str) {
        let (path, aside) = (self.folder.join(name), self.folder.join("aside"));
        std::fs::write(&aside, text).expect("a temporary file");
        std::fs::rename(&aside, &path).expect("the same folder");
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().expect("plain").to_owned()
    }

    /// `--FLAG=FILE` for a file here.
    fn flag(&self, flag: &str, name: &str) -> String {
        format!("--{flag}={}", self.path(name))
    }

    /// A client that trusts this authority, shows `own` if any, and wants one of these protocols.
    async fn connect(
        &self,
        addr: SocketAddr,
        own: Option<(&Self, &str)>,
        alpn: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(self.folder.join("ca")).expect("is there");
        roots.add(ca).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match own {
            None => config.with_no_client_auth(),
            Some((authority, name)) => {
                let file = |kind: &str| authority.folder.join(format!("{name}.{kind}"));
                let certificate = CertificateDer::from_pem_file(file("crt")).expect("is there");
                let key = PrivateKeyDer::from_pem_file(file("key")).expect("is there");
                let config = config.with_client_auth_cert(vec![certificate], key);
                config.expect("they belong together")
            }
        };
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let stream = TcpStream::connect(addr).await?;
        let name = ServerName::try_from("localhost").expect("a name");
        let connector = TlsConnector::from(Arc::new(config));
        patience(connector.connect(name, stream)).await
    }

    /// One request over HTTP/1.1, and all that comes.
    async fn ask(
        &self,
        addr: SocketAddr,
        own: Option<(&Self, &str)>,
        request: &str,
    ) -> std::io::Result<String> {
        let mut stream = self.connect(addr, own, &["http/1.1"]).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        patience(stream.read_to_end(&mut answer)).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
}

fn chat(key: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{CHAT}",
        CHAT.len()
    )
}

struct Served {
    /// It is killed with its test.
    process: Process,
    data: SocketAddr,
    admin: SocketAddr,
    _mock: Mock,
}

async fn serve(arguments: &[String]) -> Served {
    let config = MockConfig {
        default: Script::tokens(5),
        ..MockConfig::default()
    };
    let mock = Mock::bind("127.0.0.1:0", config).await.expect("a port");
    let backend = format!("--backend={}", mock.url());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut process = Process::serve(&[&[backend.as_str()], &arguments[..]].concat());
    let (data, admin) = (process.client().await.addr, process.admin().await.addr);
    Served {
        process,
        data,
        admin,
        _mock: mock,
    }
}

fn both(authority: &Authority) -> Vec<String> {
    ["", "admin-"]
        .iter()
        .flat_map(|of| {
            [
                authority.flag(&format!("{of}tls-cert-file"), "server.crt"),
                authority.flag(&format!("{of}tls-key-file"), "server.key"),
            ]
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_listeners_speak_tls_and_answer_the_clear_with_help() {
    let authority = Authority::new("both");
    let served = serve(&both(&authority)).await;
    let answer = authority
        .ask(served.data, None, &chat("a"))
        .await
        .expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("[DONE]"), "{answer}");
    let metrics = authority.ask(served.admin, None, &get("/metrics")).await;
    let metrics = metrics.expect("answered");
    for listener in ["data", "admin"] {
        let line = format!(
            "streamweld_tls_certificate_expiry_timestamp_seconds{{listener=\"{listener}\"}} "
        );
        assert!(metrics.contains(&line), "{metrics}");
    }
    for (addr, alpn) in [
        (served.data, "h2"),
        (served.data, "http/1.1"),
        (served.admin, "h2"),
    ] {
        let stream = authority
            .connect(addr, None, &[alpn])
            .await
            .expect("connects");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(alpn.as_bytes()));
    }
    for addr in [served.data, served.admin] {
        let answer = Client::new(addr).get("/livez").await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.json().await["error"]["code"], "tls_required");
        // What is neither is closed, and not waited for.
        let mut stream = TcpStream::connect(addr).await.expect("connects");
        stream.write_all(b"\0\0\0").await.expect("is sent");
        let mut rest = Vec::new();
        _ = patience(stream.read_to_end(&mut rest)).await;
        assert_eq!(rest, b"");
    }
}

/// The first attack of docs/security.md, over TLS: a resumed session of TLS is no session of HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_anothers_never_was_over_tls() {
    let authority = Authority::new("strangers");
    let served = serve(&both(&authority)).await;
    let answer = authority
        .ask(served.data, None, &chat("ann"))
        .await
        .expect("answered");
    let id = answer
        .lines()
        .find_map(|line| line.strip_prefix("x-streamweld-stream-id: "));
    let id = id.expect("a durable answer").to_owned();
    let state = |id: &str, key: &str| {
        format!(
            "GET /v1/streams/{id} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
        )
    };
    let own = authority
        .ask(served.data, None, &state(&id, "ann"))
        .await
        .expect("answered");
    assert!(own.starts_with("HTTP/1.1 200"), "{own}");
    let shape = |answer: String, id: &str| {
        let lines = answer.replace(id, "ID");
        let lines = lines
            .lines()
            .filter(|line| !line.starts_with("x-streamweld-request-id"));
        let text = lines
            .filter(|line| !line.starts_with("date"))
            .collect::<Vec<_>>()
            .join("\n");
        text.split("\"request_id\"")
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let never = "01arz3ndektsv4rrffq69g5fav";
    let foreign = authority
        .ask(served.data, None, &state(&id, "bob"))
        .await
        .expect("answered");
    let unknown = authority
        .ask(served.data, None, &state(never, "bob"))
        .await
        .expect("answered");
    assert!(foreign.starts_with("HTTP/1.1 404"), "{foreign}");
    assert_eq!(shape(foreign, &id), shape(unknown, never));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_need_a_certificate_and_probes_need_none() {
    let (authority, other) = (Authority::new("mutual"), Authority::new("mutual-other"));
    authority.certify("client");
    let mut arguments = both(&authority);
    arguments.push(authority.flag("tls-client-ca-file", "ca"));
    arguments.push(authority.flag("admin-tls-client-ca-file", "ca"));
    let served = serve(&arguments).await;
    let own = Some((&authority, "client"));
    let answer = authority
        .ask(served.data, own, &chat("a"))
        .await
        .expect("answered");
    assert!(answer.contains("[DONE]"), "{answer}");
    for stranger in [None, Some((&other, "server"))] {
        let answer = authority.ask(served.data, stranger, &chat("a")).await;
        assert!(
            !answer.is_ok_and(|answer| answer.contains("HTTP")),
            "not let in"
        );
    }
    for probe in ["/livez", "/readyz"] {
        let answer = authority
            .ask(served.admin, None, &get(probe))
            .await
            .expect("answered");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    for path in ["/metrics", "/admin/streams", "/console"] {
        let answer = authority
            .ask(served.admin, None, &get(path))
            .await
            .expect("answered");
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        let answer = authority
            .ask(served.admin, own, &get(path))
            .await
            .expect("answered");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // The commands that ask it.
    let admin = format!("--admin=https://localhost:{}", served.admin.port());
    let ca = authority.flag("admin-ca-file", "ca");
    let shown = [
        authority.flag("admin-cert-file", "client.crt"),
        authority.flag("admin-key-file", "client.key"),
    ];
    let without = ["backends", admin.as_str(), ca.as_str()];
    let (status, output) = Process::run(&without).ended().await;
    assert_eq!(status.code(), Some(1), "{output}");
    let with = [&without[..], &[shown[0].as_str(), shown[1].as_str()]].concat();
    let (status, output) = Process::run(&with).ended().await;
    assert_eq!(status.code(), Some(0), "{output}");
    let (status, output) = Process::run(&["backends", &admin]).ended().await;
    assert_eq!(status.code(), Some(3), "nobody whom it trusts: {output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_replaced_while_it_serves_and_a_bad_one_changes_nothing() {
    let authority = Authority::new("replaced");
    let mut served = serve(&both(&authority)).await;
    let (data, admin) = (served.data, served.admin);
    let shown = || async {
        let stream = authority.connect(data, None, &[]).await.expect("connects");
        let shown = stream.get_ref().1.peer_certificates().expect("is shown");
        shown[0].as_ref().to_vec()
    };
    let first = shown().await;
    let mut open = authority
        .connect(data, None, &["http/1.1"])
        .await
        .expect("connects");
    // A key that is not this certificate's.
    authority.certify("next");
    let (next, key) = (authority.path("next.crt"), authority.path("next.key"));
    let read = |path: &str| std::fs::read_to_string(path).expect("is there");
    authority.write("server.crt", &read(&next));
    served.process.signal("HUP");
    served.process.wait_output("it is not the key to").await;
    assert_eq!(shown().await, first);
    let metrics = authority
        .ask(admin, None, &get("/metrics"))
        .await
        .expect("answered");
    assert!(
        metrics.contains("streamweld_config_last_reload_successful 0"),
        "{metrics}"
    );
    authority.write("server.key", &read(&key));
    served.process.signal("HUP");
    let replaced = async {
        while shown().await == first {
            sleep(Duration::from_millis(20)).await;
        }
    };
    patience(replaced).await;
    let metrics = authority
        .ask(admin, None, &get("/metrics"))
        .await
        .expect("answered");
    assert!(
        metrics.contains("streamweld_config_last_reload_successful 1"),
        "{metrics}"
    );
    // What was open stays.
    open.write_all(get("/echo").as_bytes())
        .await
        .expect("is sent");
    let mut answer = Vec::new();
    patience(open.read_to_end(&mut answer))
        .await
        .expect("is read");
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_refused_at_the_start() {
    let (authority, other) = (Authority::new("refused"), Authority::new("refused-other"));
    authority.write("empty", "");
    let cert = authority.flag("tls-cert-file", "server.crt");
    let key = authority.flag("tls-key-file", "server.key");
    for (arguments, expected) in [
        (
            vec![cert.clone()],
            "--tls-cert-file has no use without --tls-key-file",
        ),
        (
            vec![key.clone()],
            "--tls-key-file has no use without --tls-cert-file",
        ),
        (
            vec![authority.flag("admin-tls-client-ca-file", "ca")],
            "--admin-tls-client-ca-file has no use without",
        ),
        (
            vec![cert.clone(), other.flag("tls-key-file", "server.key")],
            "it is not the key to",
        ),
        (
            vec![cert.clone(), authority.flag("tls-key-file", "empty")],
            "empty cannot be used",
        ),
        (
            vec![cert.clone(), authority.flag("tls-key-file", "none")],
            "none cannot be used",
        ),
        (
            vec![cert, key, authority.flag("tls-client-ca-file", "empty")],
            "empty cannot be used: there is no certificate in it",
        ),
    ] {
        let mut line = vec!["check-config", "--backend=http://127.0.0.1:1"];
        line.extend(arguments.iter().map(String::as_str));
        let (status, output) = Process::run(&line).ended().await;
        assert_eq!(status.code(), Some(2), "{output}");
        assert!(output.contains(expected), "{expected}: {output}");
        assert!(!output.contains("BEGIN"), "nothing of a file: {output}");
    }
}

/// A handshake that does not go on holds nobody up; and the limits of HTTP hold above TLS.
#[tokio::test(flavor = "multi_thread")]
async fn handshakes_that_stand_still_do_not_matter_to_others() {
    let authority = Authority::new("still");
    let served = serve(&both(&authority)).await;
    let mut still = Vec::new();
    for number in 0..100 {
        let mut stream = TcpStream::connect(served.data).await.expect("connects");
        if number % 2 == 0 {
            stream.write_all(b"\x16\x03\x01").await.expect("is sent");
        }
        still.push(stream);
    }
    let answer = authority
        .ask(served.data, None, &chat("a"))
        .await
        .expect("answered");
    assert!(answer.contains("[DONE]"), "{answer}");
    let long = format!("/{}", "x".repeat(17 << 10));
    let answer = authority
        .ask(served.data, None, &get(&long))
        .await
        .expect("answered");
    assert!(answer.starts_with("HTTP/1.1 414"), "{answer}");
    let wide = get("/").replace(
        "\r\n\r\n",
        &format!("\r\nx-a: {}\r\n\r\n", "x".repeat(80 << 10)),
    );
    // It is answered before it is read whole, so that the connection may be reset.
    let answer = authority.ask(served.data, None, &wide).await;
    assert!(
        answer.map_or(true, |answer| answer.starts_with("HTTP/1.1 431")),
        "bounded"
    );
    for mut stream in still {
        let mut rest = Vec::new();
        _ = patience(stream.read_to_end(&mut rest)).await;
    }
}
