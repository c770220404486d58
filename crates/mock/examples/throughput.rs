//! How many events a second one core of the mock writes: `cargo run --release --example throughput`.
//!
//! The mock has the main thread to itself; clients on other threads only read. Arguments: clients,
//! then scripts in JSON (default: one event per write, and batches of 64).

use std::{
    env,
    error::Error,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Instant,
};

use streamweld_mock::{Ask, Dialect, Mock, Script};

const EVENTS: usize = 500_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let clients: usize = args.next().map_or(Ok(1), |arg| arg.parse())?;
    let mut scripts: Vec<String> = args.collect();
    if scripts.is_empty() {
        scripts = ["{}", r#"{"writes":{"batch":64}}"#]
            .map(str::to_owned)
            .to_vec();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    for json in scripts {
        let mut script = Script::from_json(&json)?;
        script.tokens.get_or_insert(EVENTS / clients);
        let events = script.expected(&Ask::stream(Dialect::OpenAiChat)).len() * clients;
        let (bytes, seconds) = runtime.block_on(async {
            let mock = Mock::start(script).await?;
            let addr = mock.addr();
            let start = Instant::now();
            let readers: Vec<_> = (0..clients)
                .map(|_| tokio::task::spawn_blocking(move || read(addr)))
                .collect();
            let mut bytes = 0;
            for reader in readers {
                bytes += reader.await??;
            }
            Ok::<_, Box<dyn Error>>((bytes, start.elapsed().as_secs_f64()))
        })?;
        let rate = events as f64 / seconds;
        let mib = bytes as f64 / seconds / f64::from(1 << 20);
        writeln!(
            std::io::stdout(),
            "{json}: {rate:.0} events/s, {mib:.0} MiB/s"
        )?;
    }
    Ok(())
}

/// Reads one streamed answer to the end of its connection.
fn read(addr: SocketAddr) -> std::io::Result<usize> {
    let mut stream = TcpStream::connect(addr)?;
    let body = r#"{"stream":true}"#;
    let length = body.len();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    let mut buf = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        match stream.read(&mut buf)? {
            0 => return Ok(bytes),
            size => bytes += size,
        }
    }
}
