//! How replicas reach each other without Redis.

use rcgen::{CertificateParams, KeyPair};

use super::*;

#[test]
fn the_settings_of_a_relay_go_together() {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["relay", "127.0.0.1"].map(str::to_owned)).expect("a name");
    let certificate = params.self_signed(&key).expect("signed").pem();
    let files = [
        file("relay-cert", &certificate),
        file("relay-key", &key.serialize_pem()),
        file("relay-ca", &certificate),
    ];
    let [cert, key, ca] = &files;
    let cert = &*format!("--relay-cert={cert}");
    let key = &*format!("--relay-key={key}");
    let authority = &*format!("--relay-ca={ca}");
    let redis = "--journal=redis://r";
    let listen = "--relay-listen=127.0.0.1:7443";
    accept(&[redis, listen, cert, key, authority]);
    let more = ["--relay-advertise=[2001:db8::1]:7443", "--relay-name=relay"];
    accept(&[
        redis,
        "--relay-listen=[::]:7443",
        cert,
        key,
        authority,
        more[0],
        more[1],
    ]);
    for (line, said) in [
        (
            &[redis, listen, cert, authority][..],
            &["--relay-listen", "--relay-key"][..],
        ),
        (
            &[listen, cert, key, authority],
            &["--relay-listen", "--journal", "memory"],
        ),
        (&[redis, cert], &["--relay-cert", "--relay-listen"]),
        (&[redis, more[0]], &["--relay-advertise", "--relay-listen"]),
        (
            &[redis, "--relay-listen=0.0.0.0:7443", cert, key, authority],
            &["--relay-listen", "--relay-advertise"],
        ),
        (
            &[redis, "--relay-listen=127.0.0.1:8080", cert, key, authority],
            &["--relay-listen", "--listen", "same place"],
        ),
        (
            &[redis, listen, cert, key, "--relay-ca=/nowhere.pem"],
            &["--relay-ca", "/nowhere.pem"],
        ),
        (
            &[
                redis,
                listen,
                cert,
                key,
                &format!("--relay-ca={}", files[1]),
            ],
            &["no certificate"],
        ),
    ] {
        check(line, said);
    }
    for (bad, said) in [
        ("--relay-advertise=host", "host and a port"),
        ("--relay-advertise=host:0", "1 to 65535"),
        ("--relay-advertise=0.0.0.0:1", "reach"),
        ("--relay-advertise=[::]:1", "reach"),
        ("--relay-advertise=a/b:1", "reach"),
        ("--relay-name=a b", "name"),
    ] {
        check(&[bad], &[said]);
    }
    for file in files {
        std::fs::remove_file(file).expect("there");
    }
}

#[test]
fn a_certificate_that_nobody_would_believe_is_refused() {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["relay".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("signed").pem();
    let files = [
        file("relay-other-cert", &certificate),
        file("relay-other-key", &key.serialize_pem()),
    ];
    let line = [
        "--journal=redis://r",
        "--relay-listen=127.0.0.1:7443",
        &format!("--relay-cert={}", files[0]),
        &format!("--relay-key={}", files[1]),
        &format!("--relay-ca={}", files[0]),
    ];
    check(&line, &["--relay-cert", "not for 127.0.0.1"]);
    let named = [&line[..], &["--relay-name=relay"]].concat();
    accept(&named);
    for file in files {
        std::fs::remove_file(file).expect("there");
    }
}
