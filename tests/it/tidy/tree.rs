//! The files of the repository, as far as they are ours.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file.
pub(super) struct File {
    /// Its path from the root of the repository.
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    /// The name without folders.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// What is built, installed, copied or found by a fuzzer. A tree without git, such as an archive, has to be read as well, so
/// git is not asked.
const NOT_OURS: [&str; 9] = [
    ".git",
    ".venv",
    "__pycache__",
    "advisory-db",
    "artifacts",
    "corpus",
    "coverage",
    "node_modules",
    "target",
];

/// The root of the repository.
pub(super) fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("the tests stand in the repository")
        .to_owned()
}

/// Reads one file.
#[track_caller]
pub(super) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every text file below `folder` (`""` is the root) whose name ends in `suffix`.
pub(super) fn files(folder: &str, suffix: &str) -> Vec<File> {
    let mut found = Vec::new();
    collect(&root(), &root().join(folder), suffix, &mut found);
    assert!(!found.is_empty(), "there is no {suffix} below {folder:?}");
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn collect(root: &Path, folder: &Path, suffix: &str, found: &mut Vec<File>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !NOT_OURS.contains(&name.as_ref()) {
                collect(root, &path, suffix, found);
            }
        } else if name.ends_with(suffix) {
            // What is not text is a fixture.
            if let Ok(text) = fs::read_to_string(&path) {
                let path = path
                    .strip_prefix(root)
                    .expect("found below it")
                    .to_string_lossy()
                    .into_owned();
                found.push(File { path, text });
            }
        }
    }
}
