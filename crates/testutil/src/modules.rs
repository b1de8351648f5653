//! Reads which top-level modules of a crate use which: helpers live below those who use them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The top-level modules of a crate, and which others each of them names in `use crate::…` or any other `crate::` path.
/// Tests are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Modules {
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Modules {
    /// Of the crate in the folder `package`.
    ///
    /// # Panics
    /// Its sources cannot be read.
    pub(crate) fn of_package(package: impl AsRef<Path>) -> Self {
        let src = package.as_ref().join("src");
        let (mut files, mut folders) = (BTreeMap::new(), vec![src.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
                let path = entry.expect("an entry of a folder of sources").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let text = std::fs::read_to_string(&path).expect("a source in UTF-8");
                    files.insert(
                        path.strip_prefix(&src).expect("a file below the folder").to_owned(),
                        text,
                    );
                }
            }
        }
        Self::of_files(&files)
    }

    /// Of sources by their paths below `src`.
    ///
    /// # Panics
    /// There is no `lib.rs`.
    pub(crate) fn of_files(files: &BTreeMap<PathBuf, String>) -> Self {
        let root = code(&files[Path::new("lib.rs")]);
        let names: BTreeSet<String> = declared(&root).collect();
        // Names that the root of the crate exports, by the module that they come from.
        let mut exported = BTreeMap::new();
        for Import { head, leaf, .. } in imports(&root).filter(|i| names.contains(&i.head)) {
            if leaf != "*" {
                exported.insert(leaf, head);
                continue;
            }
            let of_module = [format!("{head}.rs"), format!("{head}/mod.rs")]
                .into_iter()
                .find_map(|f| files.get(Path::new(&f)));
            let text = code(of_module.expect("a file of a declared module"));
            // What it takes from elsewhere is exported there.
            let exports = imports(&text)
                .filter(|i| i.is_public && !["crate", "super"].contains(&&*i.head))
                .map(|i| i.leaf);
            exported.extend(exports.chain(items(&text)).map(|leaf| (leaf, head.clone())));
        }
        let mut uses: BTreeMap<String, BTreeSet<String>> =
            names.iter().map(|n| (n.clone(), BTreeSet::new())).collect();
        for (path, text) in files {
            let Some(first) = path.iter().next().and_then(|p| p.to_str()) else { continue };
            let own = first.trim_end_matches(".rs");
            let is_test = path
                .iter()
                .any(|p| p.to_str().is_some_and(|p| p.trim_end_matches(".rs").ends_with("tests")));
            let Some(of_own) = uses.get_mut(own).filter(|_| !is_test) else { continue };
            let text = code(text);
            let top = path.components().count() == 1
                || path.ends_with("mod.rs") && path.components().count() == 2;
            for name in paths(&text, top) {
                let module = if names.contains(&name) { Some(&name) } else { exported.get(&name) };
                of_own.extend(module.filter(|m| *m != own).cloned());
            }
        }
        Self { uses }
    }

    /// Every module with those that it uses.
    pub(crate) fn uses(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.uses
    }

    /// With several modules as one of the name `name`.
    #[must_use]
    pub(crate) fn merged(self, name: &str, group: &[&str]) -> Self {
        let rename = |m: String| if group.contains(&m.as_str()) { name.to_owned() } else { m };
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, used) in self.uses {
            let module = rename(module);
            let used: Vec<String> = used.into_iter().map(rename).filter(|m| *m != module).collect();
            uses.entry(module).or_default().extend(used);
        }
        Self { uses }
    }

    /// Modules each of which uses the next, and the last the first; `None` where there is no such circle.
    pub(crate) fn circle(&self) -> Option<Vec<&str>> {
        fn visit<'a>(
            m: &'a Modules,
            at: &'a str,
            done: &mut BTreeSet<&'a str>,
            way: &mut Vec<&'a str>,
        ) -> Option<Vec<&'a str>> {
            if let Some(start) = way.iter().position(|w| *w == at) {
                return Some(way[start..].to_vec());
            }
            if done.contains(at) {
                return None;
            }
            way.push(at);
            let found =
                m.uses.get(at).into_iter().flatten().find_map(|next| visit(m, next, done, way));
            way.pop();
            done.insert(at);
            found
        }
        let mut done = BTreeSet::new();
        self.uses.keys().find_map(|m| visit(self, m, &mut done, &mut vec![]))
    }
}

/// A source without comments and without the tests at its foot.
pub(crate) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut after_test = false;
    for line in text.lines() {
        let line = line.find("//").map_or(line, |at| &line[..at]);
        if line.starts_with("#[cfg(") && line.contains("test") {
            after_test = true;
            continue;
        }
        if after_test && line.starts_with("#[") {
            continue;
        }
        let of_test = std::mem::take(&mut after_test);
        if of_test && line.contains("mod ") && line.ends_with('{') {
            break;
        }
        // Modules and exports for tests are one line each.
        if !(of_test && line.ends_with(';')) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Names of the modules that a root declares.
fn declared(root: &str) -> impl Iterator<Item = String> + '_ {
    root.lines().filter_map(|l| {
        l.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';').map(str::to_owned)
    })
}

/// Names of the public items that a file defines.
fn items(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines().filter_map(|l| {
        let mut words = l.strip_prefix("pub ")?.split_whitespace();
        let kind = words.next()?;
        let is_item = ["fn", "struct", "enum", "trait", "type", "const", "static"].contains(&kind);
        is_item.then(|| words.next().map(|n| n.chars().take_while(|c| is_name(*c)).collect()))?
    })
}

/// A name that a file imports.
struct Import {
    /// First segment of the path; `crate` alone where the path starts at the root.
    head: String,
    /// The name, or `*`.
    leaf: String,
    /// Whether it is exported to other crates.
    is_public: bool,
}

fn imports(text: &str) -> impl Iterator<Item = Import> + '_ {
    text.split(';').flat_map(|statement| {
        let at = statement
            .rfind("use ")
            .filter(|&at| at == 0 || !is_name(statement.as_bytes()[at - 1] as char));
        let tree: String = at
            .map_or("", |at| &statement[at + 4..])
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let is_public = at.is_some_and(|at| statement[..at].trim_end().ends_with("pub"));
        let head: String = tree.chars().take_while(|c| is_name(*c)).collect();
        let ends = tree
            .split([',', '{', '}'])
            .map(str::trim)
            .filter(|end| !end.is_empty() && !end.ends_with("::"));
        let ends: Vec<String> =
            ends.map(|end| end.rsplit([' ', ':']).next().unwrap_or(end).to_owned()).collect();
        ends.into_iter().map(move |leaf| Import { head: head.clone(), leaf, is_public })
    })
}

/// First segments of the paths from the root of the crate; those that start with `super` too in a file of a top-level
/// module.
fn paths(text: &str, top: bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut from = |start: &str| {
        let Some(group) = start.strip_prefix('{') else {
            found.insert(start.chars().take_while(|c| is_name(*c)).collect());
            return;
        };
        let (mut depth, mut entry) = (0, String::new());
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    found.insert(std::mem::take(&mut entry));
                }
                c if depth == 0 && is_name(c) && !entry.ends_with(' ') => entry.push(c),
                // Of each entry the first segment.
                _ if depth == 0 && !entry.is_empty() && !entry.ends_with(' ') => entry.push(' '),
                _ => {}
            }
        }
        found.insert(entry);
    };
    for (at, _) in text.match_indices("crate::") {
        if !text[..at].ends_with(|c| is_name(c) || c == '$') {
            from(&text[at + "crate::".len()..]);
        }
    }
    if top {
        for line in text.lines() {
            if let Some((_, start)) = line
                .split_once("use super::")
                .filter(|(before, _)| before.is_empty() || before.starts_with("pub"))
            {
                from(start);
            }
        }
    }
    found.into_iter().map(|name| name.trim().to_owned()).collect()
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Crates in which no two modules use each other, directly or through others, and a use in each that shows that sources
/// are read.
const WITHOUT_CIRCLES: [(&str, &str, &str); 12] = [
    ("structure", "relation", "shared_array"),
    ("files", "mapped_file", "error"),
    ("graph", "batch", "graph"),
    ("sampling", "loading", "sampler"),
    ("data", "store", "files"),
    ("store", "cache", "rows"),
    ("plan", "gspmm", "broadcast"),
    ("cpu", "attention", "adjacency"),
    ("cube", "walk", "layout"),
    ("ops", "gspmm", "operator"),
    ("dist", "tensor", "graph"),
    ("models", "rgcn", "rel_graph_conv"),
];

#[test]
fn modules_go_round_in_no_circle() {
    for (name, user, used) in WITHOUT_CIRCLES {
        let modules = Modules::of_package(crate::folders::root().join("crates").join(name));
        assert!(
            modules.uses()[user].contains(used),
            "sources of {name} are read: {:?}",
            modules.uses()[user]
        );
        assert_eq!(modules.circle(), None, "{name}");
    }
}

/// The structure of graphs takes nothing from graphs with features, samplers, files and tensors.
#[test]
fn structure_stands_alone() {
    let manifest =
        std::fs::read_to_string(crate::folders::root().join("crates/structure/Cargo.toml"))
            .unwrap();
    let own = manifest.split("[dev-dependencies]").next().unwrap();
    let wrong: Vec<&str> = own
        .lines()
        .filter(|l| l.starts_with("burn") || l.starts_with("tempfile") || l.starts_with("memmap2"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let mut folders = vec![crate::folders::root().join("crates/structure/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = code(&std::fs::read_to_string(&path).unwrap());
            let wrong = ["std::fs", "std::path", "std::io", "burn::", "burn_gnn_"]
                .into_iter()
                .find(|name| text.contains(name));
            assert_eq!(wrong, None, "{}", path.display());
        }
    }
}

/// What is read of sources: modules, exports by name and by glob, groups, and nothing of comments and tests.
#[test]
fn modules_of_sources() {
    let files = |b: &str| {
        [
            ("lib.rs", "pub mod a;\nmod b;\n#[cfg(test)]\nmod spoil;\nmod c;\n\npub use a::Apple;\npub use c::*;\npub(crate) use b::{self as bee, pear as plum};\n"),
            ("a.rs", "// crate::b is not used\nuse crate::{c::{x, y}, Cherry};\n#[cfg(test)]\nmod tests {\n    use crate::b::pear;\n}\n"),
            ("b/mod.rs", b),
            ("b/tests.rs", "use crate::a::Apple;"),
            ("c/mod.rs", "mod inner;\npub struct Cherry;\npub use inner::{Core, Stone as Pit};\n"),
            ("c/inner.rs", "use super::Cherry;\n"),
            ("spoil.rs", "use crate::b::pear;"),
        ]
        .into_iter()
        .map(|(path, text)| (std::path::PathBuf::from(path), text.to_owned()))
        .collect()
    };
    let uses = |text: &str| -> Vec<String> {
        Modules::of_files(&files(text)).uses()["b"].iter().cloned().collect()
    };
    assert_eq!(uses("fn f() { crate::Apple::new() }\n"), ["a"]);
    assert_eq!(uses("use crate::Pit;\n"), ["c"]);
    assert_eq!(uses("use crate::{\n    Apple,\n    c::{Core, Cherry},\n};\n"), ["a", "c"]);
    assert_eq!(uses("pub use super::a;\nuse crate::plum;\n"), ["a"]);
    assert!(uses("use other_crate::Apple;\nuse self::a::b;\n").is_empty());
    let modules = Modules::of_files(&files("use crate::Apple;\n"));
    assert_eq!(modules.uses().keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!((modules.uses()["a"].len(), modules.circle()), (1, None));
    // Round in a circle, and not where its modules are one.
    let mut round = files("use crate::Apple;\n");
    *round.get_mut(std::path::Path::new("c/inner.rs")).unwrap() = "use crate::b::pear;".into();
    let round = Modules::of_files(&round);
    assert_eq!(round.circle(), Some(vec!["a", "c", "b"]));
    assert_eq!(round.merged("all", &["a", "b", "c"]).circle(), None);
}
