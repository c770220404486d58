//! The files that settings stand in, or name, and whether one of them has changed.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::args::{Setting, Stands};

/// Those files, as they were when they were last looked at.
pub(super) struct Files(Vec<(PathBuf, Option<Mark>)>);

/// What tells one content from another. Mounted secrets change by the target of a link, so by the number of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: u64,
    number: u64,
    length: u64,
    changed: Option<SystemTime>,
}

impl Mark {
    fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self {
            device: meta.dev(),
            number: meta.ino(),
            length: meta.len(),
            changed: meta.modified().ok(),
        })
    }
}

impl Files {
    pub(super) fn of(settings: &[Setting]) -> Self {
        let mut files = Self(Vec::new());
        files.follow(settings);
        files
    }

    /// Looks at the files of these settings from now on. Those that were there keep their marks.
    pub(super) fn follow(&mut self, settings: &[Setting]) {
        let known = std::mem::take(&mut self.0);
        for path in settings.iter().flat_map(named) {
            if self.0.iter().any(|(other, _)| *other == path) {
                continue;
            }
            let mark = known.iter().find(|(other, _)| *other == path);
            let mark = mark.map_or_else(|| Mark::of(&path), |(_, mark)| *mark);
            self.0.push((path, mark));
        }
    }

    /// Whether one has changed since this was last asked. One that went away has; so has one that is there again.
    pub(super) fn have_changed(&mut self) -> bool {
        let mut have_changed = false;
        for (path, mark) in &mut self.0 {
            let now = Mark::of(path);
            have_changed |= now != *mark;
            *mark = now;
        }
        have_changed
    }
}

/// The files of one setting: the one that it stands in, and those that it names.
fn named(setting: &Setting) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if let Stands::Line { file, .. } = &setting.stands {
        files.push(file.clone());
    }
    match setting.name.as_str() {
        // `URL,credential-file=FILE`, several with white space between them.
        "backend" => {
            let backends = setting.values.iter().flat_map(|all| all.split_whitespace());
            let options = backends.flat_map(|backend| backend.split(',').skip(1));
            let credentials = options.filter_map(|option| option.strip_prefix("credential-file="));
            files.extend(credentials.map(PathBuf::from));
        }
        name if name.ends_with("_file") => files.extend(setting.values.iter().map(PathBuf::from)),
        _ => {}
    }
    files
}
