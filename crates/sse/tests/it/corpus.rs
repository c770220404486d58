//! Replays the fuzz target's corpus, so that what was found once stays found without a fuzzer.

use std::{fs, path::Path};

use super::check;

#[test]
fn every_file_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/sse_decode");
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check::fuzz(&fs::read(path).unwrap());
        count += 1;
    }
    assert!(count >= 20, "only {count} files in {}", folder.display());
}
