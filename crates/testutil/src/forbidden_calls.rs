//! Searches the sources of the libraries for files that are opened without
//! `burn_gnn_files::internal::open`, and for prints.

use std::path::Path;

use crate::folders::root;
use crate::modules::code;

/// Calls that open a file by its path. Each of them blocks on a pipe without writer and reads
/// devices without end.
const OPENS: [&str; 6] = [
    "File::open(",
    "File::create(",
    "File::options()",
    "OpenOptions::new()",
    "fs::read(",
    "fs::read_to_string(",
];

/// Files in which such a call is allowed, with the reason.
const ALLOWED: [(&str, &str); 6] = [
    ("crates/files/src/open.rs", "the check itself"),
    ("crates/files/src/atomic.rs", "new files, folders, and locks whose kind is compared"),
    ("crates/store/src/section_writer.rs", "options of `open_with`"),
    ("crates/store/src/build/journal.rs", "options of `open_with`"),
    ("crates/data/src/datasets/fetch.rs", "a file that must be new"),
    ("crates/data/src/files/corrupt_file.rs", "compiled for tests alone"),
];

/// Prefixes of literal paths of system files, which are allowed.
const OF_SYSTEM: [&str; 2] = ["\"/proc/", "\"/sys/"];

/// Returns the lines of a source, without comments and tests, that open a file by path.
fn opens(text: &str) -> Vec<String> {
    let opens = |line: &&str| {
        OPENS.iter().any(|open| {
            line.match_indices(open).any(|(at, _)| {
                // `SectionFile::open` and its like are types of this library.
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        }) && !OF_SYSTEM.iter().any(|path| line.contains(path))
    };
    code(text).lines().filter(opens).map(|line| line.trim().to_owned()).collect()
}

fn sources(folder: &Path, f: &mut impl FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if name != "tests" && name != "testutil" && name != "benches" {
                sources(&path, f);
            }
        } else if name.ends_with(".rs") && !name.trim_end_matches(".rs").ends_with("tests") {
            f(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn files_are_opened_by_one_function() {
    let (root, mut found, mut seen) = (root(), vec![], vec![]);
    let mut look = |path: &Path, text: &str| {
        let lines = opens(text);
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        match ALLOWED.iter().find(|(allowed, _)| *allowed == name) {
            Some((allowed, _)) if !lines.is_empty() => seen.push(*allowed),
            _ => found.extend(lines.into_iter().map(|line| format!("{name}: {line}"))),
        }
    };
    sources(&root.join("crates"), &mut look);
    sources(&root.join("src"), &mut look);
    assert!(found.is_empty(), "open with `burn_gnn_files::internal::open`: {found:#?}");
    seen.sort_unstable();
    let mut allowed = ALLOWED.map(|a| a.0);
    allowed.sort_unstable();
    assert_eq!(seen, allowed, "every exception is one");
}

/// A library reports by results, panics, progress bars and `tracing`; only programs print.
#[test]
fn libraries_do_not_print() {
    let (root, mut found) = (root(), vec![]);
    let mut look = |path: &Path, text: &str| {
        let prints = |line: &&str| line.contains("println!(") || line.contains("dbg!(");
        let name = path.strip_prefix(&root).unwrap().display();
        found.extend(code(text).lines().filter(prints).map(|line| format!("{name}: {line}")));
    };
    sources(&root.join("crates"), &mut look);
    sources(&root.join("src"), &mut look);
    assert!(found.is_empty(), "{found:#?}");
}

/// Calls are found, but not comments, tests, types of the library and files of the system.
#[test]
fn opens_of_sources() {
    let text = "//! File::open(path)\nlet a = std::fs::File::open(path)?;\nlet b = SectionFile::open(path)?;\n\
                let c = std::fs::read_to_string(\"/proc/cpuinfo\");\nlet d = fs::read(&path); // fs::read(x)\n\
                #[cfg(test)]\nmod tests {\n    let e = File::create(path);\n}\n";
    assert_eq!(opens(text), ["let a = std::fs::File::open(path)?;", "let d = fs::read(&path);"]);
}
