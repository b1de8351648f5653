//! Reads which modules of a crate use each other, and checks that modules are layered at every
//! level of folders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::Visit;

/// Path of a module from the root of the crate; empty for the root.
type ModulePath = Vec<String>;

/// The modules of a crate and the uses between them, without tests.
pub(crate) struct Modules {
    /// For each module, the modules in which the items that it uses are defined.
    uses: BTreeMap<ModulePath, BTreeSet<ModulePath>>,
    /// Modules and the names that they import from the re-exports of the crate root.
    through_root: Vec<(String, String)>,
}

/// Declarations of one module, by name.
#[derive(Default)]
struct Scope {
    items: BTreeSet<String>,
    /// Paths of `use` declarations, by the name that they bind.
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Paths in `use` declarations, types, expressions and macros.
    paths: Vec<Vec<String>>,
}

impl Modules {
    /// Reads the crate in the folder `package`.
    ///
    /// # Panics
    /// Its sources cannot be read or parsed.
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
                    let name = path.strip_prefix(&src).expect("a file in the folder");
                    files.insert(name.to_str().expect("a path in UTF-8").to_owned(), text);
                }
            }
        }
        Self::of_files(&files)
    }

    /// Reads sources by their paths in `src`.
    ///
    /// # Panics
    /// A source cannot be parsed.
    pub(crate) fn of_files(files: &BTreeMap<String, String>) -> Self {
        let mut scopes: BTreeMap<ModulePath, Scope> = BTreeMap::new();
        let mut of_tests = BTreeSet::new();
        for (name, text) in files {
            let file = syn::parse_file(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            let mut reader =
                Reader { module: module_of(name), scopes: &mut scopes, of_tests: &mut of_tests };
            reader.scopes.entry(reader.module.clone()).or_default();
            reader.visit_file(&file);
        }
        scopes.retain(|module, _| !(1..=module.len()).any(|n| of_tests.contains(&module[..n])));
        let (mut uses, mut through_root) = (BTreeMap::new(), vec![]);
        for (module, scope) in &scopes {
            let of_root = scope.paths.iter().filter_map(|path| {
                let path = absolute(&scopes, module, path)?;
                let name =
                    path.first().filter(|name| !scopes.contains_key(&[(*name).clone()][..]))?;
                let is_re_exported = !module.is_empty() && !scopes[&[][..]].items.contains(name);
                let defined = definition(&scopes, &path, 0).map(|m| m.join("::"));
                let from = defined.map_or("another crate".to_owned(), |m| format!("crate::{m}"));
                is_re_exported
                    .then(|| (module.join("::"), format!("crate::{name}, which is of {from}")))
            });
            through_root.extend(of_root.collect::<BTreeSet<_>>());
            let used = scope.paths.iter().filter_map(|path| {
                let path = absolute(&scopes, module, path)?;
                let found = definition(&scopes, &path, 0)?;
                (found != *module).then_some(found)
            });
            uses.insert(module.clone(), used.collect());
        }
        Self { uses, through_root }
    }

    /// Returns the children of `folder`, each with the children that it uses.
    fn level(&self, folder: &[String]) -> BTreeMap<&str, BTreeSet<&str>> {
        let child = |module: &'_ ModulePath| -> Option<usize> {
            (module.len() > folder.len() && module.starts_with(folder)).then_some(folder.len())
        };
        let mut level: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (module, used) in &self.uses {
            let Some(at) = child(module) else { continue };
            let of_child = level.entry(&module[at]).or_default();
            of_child.extend(
                used.iter()
                    .filter(|u| child(u).is_some())
                    .map(|u| &*u[at])
                    .filter(|u| *u != module[at]),
            );
        }
        level
    }

    /// Returns the shortest circle, as a path, of each folder whose children use each other.
    pub(crate) fn circles(&self) -> Vec<Vec<String>> {
        let folders: BTreeSet<&[String]> =
            self.uses.keys().flat_map(|m| (0..m.len()).map(|n| &m[..n])).collect();
        let mut found = vec![];
        for folder in folders {
            let level = self.level(folder);
            let shortest = level.keys().filter_map(|start| circle_from(&level, start));
            if let Some(circle) = shortest.min_by_key(Vec::len) {
                let path = |name: &&str| {
                    folder.iter().map(String::as_str).chain([*name]).collect::<Vec<_>>().join("::")
                };
                found.push(circle.iter().map(path).collect());
            }
        }
        found
    }

    /// Returns uses of parents: of items that a parent module defines, and of names that the crate
    /// root re-exports.
    pub(crate) fn uses_of_parents(&self) -> Vec<(String, String)> {
        let mut found = self.through_root.clone();
        for (module, used) in &self.uses {
            for parent in used.iter().filter(|u| u.len() < module.len() && module.starts_with(u)) {
                let parent = [&["crate".to_owned()], &parent[..]].concat();
                found.push((module.join("::"), parent.join("::")));
            }
        }
        found
    }
}

/// Returns the shortest path from `start` back to itself.
fn circle_from<'a>(
    level: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    start: &'a str,
) -> Option<Vec<&'a str>> {
    let mut queue = std::collections::VecDeque::from([vec![start]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = queue.pop_front() {
        for next in level.get(way.last()?).into_iter().flatten() {
            if *next == start {
                return Some(way);
            }
            if seen.insert(*next) {
                queue.push_back([&way[..], &[*next]].concat());
            }
        }
    }
    None
}

/// Returns the module of a file: `a::b` for `a/b.rs` and `a/b/mod.rs`.
fn module_of(file: &str) -> ModulePath {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    if path == "lib" { vec![] } else { path.split('/').map(str::to_owned).collect() }
}

/// Resolves a path that is written in `module` to a path from the root of the crate; `None` for
/// paths into other crates.
fn absolute(
    scopes: &BTreeMap<ModulePath, Scope>,
    module: &[String],
    path: &[String],
) -> Option<ModulePath> {
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => {
            let parent = module.split_last()?.1;
            let rest = &path[1..];
            if rest.first().is_some_and(|s| s == "super") {
                absolute(scopes, parent, rest)
            } else {
                Some([parent, rest].concat())
            }
        }
        child => {
            let inner = [module, &[child.to_owned()]].concat();
            scopes.contains_key(&inner).then(|| [module, path].concat())
        }
    }
}

/// Returns the module in which the item at `path` is defined, following re-exports.
fn definition(
    scopes: &BTreeMap<ModulePath, Scope>,
    path: &[String],
    depth: usize,
) -> Option<ModulePath> {
    if depth > 8 {
        return None;
    }
    let known = (0..=path.len()).rev().find(|&n| scopes.contains_key(&path[..n]))?;
    let (module, rest) = path.split_at(known);
    let scope = &scopes[module];
    let Some(name) = rest.first() else { return Some(module.to_vec()) };
    if scope.items.contains(name) {
        return Some(module.to_vec());
    }
    if let Some(target) = scope.imports.get(name) {
        let target = absolute(scopes, module, target)?;
        return definition(scopes, &[&target[..], &rest[1..]].concat(), depth + 1);
    }
    scope.globs.iter().find_map(|glob| {
        let target = absolute(scopes, module, glob)?;
        definition(scopes, &[&target[..], rest].concat(), depth + 1)
    })
}

/// Collects what a file declares and uses.
struct Reader<'a> {
    module: ModulePath,
    scopes: &'a mut BTreeMap<ModulePath, Scope>,
    of_tests: &'a mut BTreeSet<ModulePath>,
}

impl Reader<'_> {
    fn scope(&mut self) -> &mut Scope {
        self.scopes.entry(self.module.clone()).or_default()
    }

    fn read_use(&mut self, tree: &syn::UseTree, mut path: Vec<String>) {
        match tree {
            syn::UseTree::Path(next) => {
                path.push(next.ident.to_string());
                self.read_use(&next.tree, path);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.read_use(tree, path.clone());
                }
            }
            syn::UseTree::Glob(_) => {
                self.scope().globs.push(path.clone());
                self.scope().paths.push(path);
            }
            syn::UseTree::Name(syn::UseName { ident }) => self.bind(path, ident, ident),
            syn::UseTree::Rename(r) => self.bind(path, &r.ident, &r.rename),
        }
    }

    fn bind(&mut self, mut path: Vec<String>, name: &syn::Ident, bound: &syn::Ident) {
        if name == "self" {
            let own = path.last().cloned().unwrap_or_default();
            let bound = if bound == "self" { own } else { bound.to_string() };
            self.scope().imports.insert(bound, path.clone());
        } else {
            path.push(name.to_string());
            self.scope().imports.insert(bound.to_string(), path.clone());
        }
        self.scope().paths.push(path);
    }

    fn read_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        let mut path: Vec<String> = vec![];
        let mut colons = 0;
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Ident(name) => {
                    if colons < 2 {
                        self.scope().paths.push(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                proc_macro2::TokenTree::Punct(p) if p.as_char() == ':' => colons += 1,
                proc_macro2::TokenTree::Group(group) => self.read_tokens(group.stream()),
                _ => colons = 0,
            }
        }
        self.scope().paths.push(path);
    }
}

fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("test")
            || a.path().is_ident("cfg")
                && a.meta.require_list().is_ok_and(|l| {
                    let condition = l.tokens.to_string();
                    condition.contains("test") && !condition.contains("not")
                })
    })
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        use syn::Item;
        let (attributes, name) = match item {
            Item::Const(i) => (&i.attrs, Some(&i.ident)),
            Item::Enum(i) => (&i.attrs, Some(&i.ident)),
            Item::Fn(i) => (&i.attrs, Some(&i.sig.ident)),
            Item::Macro(i) => (&i.attrs, i.ident.as_ref()),
            Item::Mod(i) => (&i.attrs, None),
            Item::Static(i) => (&i.attrs, Some(&i.ident)),
            Item::Struct(i) => (&i.attrs, Some(&i.ident)),
            Item::Trait(i) => (&i.attrs, Some(&i.ident)),
            Item::Type(i) => (&i.attrs, Some(&i.ident)),
            Item::Union(i) => (&i.attrs, Some(&i.ident)),
            Item::Impl(i) => (&i.attrs, None),
            Item::Use(i) => (&i.attrs, None),
            _ => return syn::visit::visit_item(self, item),
        };
        if is_of_tests(attributes) {
            if let Item::Mod(module) = item {
                self.of_tests.insert([&self.module[..], &[module.ident.to_string()]].concat());
            }
            return;
        }
        if let Some(name) = name {
            self.scope().items.insert(name.to_string());
        }
        match item {
            Item::Use(i) => self.read_use(&i.tree, vec![]),
            Item::Mod(i) if i.content.is_some() => {
                self.module.push(i.ident.to_string());
                self.scope();
                syn::visit::visit_item_mod(self, i);
                self.module.pop();
            }
            _ => syn::visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if names.len() > 1 {
            self.scope().paths.push(names);
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.read_tokens(call.tokens.clone());
    }
}

/// Removes comments, and the tests at the end, from a source.
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
        // Modules and exports for tests take one line each.
        if !(of_test && line.ends_with(';')) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Crates whose modules are layered.
const CRATES: [&str; 14] = [
    "structure",
    "files",
    "graph",
    "sampling",
    "data",
    "store",
    "plan",
    "cpu",
    "cube",
    "ops",
    "dist",
    "models",
    "links",
    "cli",
];

#[test]
fn no_two_modules_use_each_other() {
    let mut found = vec![];
    for name in CRATES {
        let modules = Modules::of_package(crate::folders::root().join("crates").join(name));
        assert!(modules.uses.values().any(|used| !used.is_empty()), "sources of {name} are read");
        found.extend(modules.circles().iter().map(|c| format!("{name}: {}", c.join(" -> "))));
    }
    assert!(found.is_empty(), "{} circles:\n{}", found.len(), found.join("\n"));
}

/// Items are imported from the module that defines them; at most ten imports are from a parent.
#[test]
fn few_modules_use_their_parents() {
    let mut found = vec![];
    for name in CRATES {
        let modules = Modules::of_package(crate::folders::root().join("crates").join(name));
        let uses = modules.uses_of_parents();
        found.extend(uses.iter().map(|(user, used)| format!("{name}: {user} -> {used}")));
    }
    assert!(found.len() <= 10, "{} uses of a parent:\n{}", found.len(), found.join("\n"));
}

/// The crate `structure` depends neither on other crates of the workspace nor on Burn, and accesses
/// no files.
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

/// Paths, re-exports by name and by glob, groups and folders count; comments and tests do not.
#[test]
fn modules_of_sources() {
    let files = |b: &str, inner: &str| -> BTreeMap<String, String> {
        [
            ("lib.rs", "pub mod a;\nmod b;\n#[cfg(test)]\nmod spoil;\nmod c;\n\npub use a::Apple;\npub use c::*;\npub(crate) use b::{self as bee, pear as plum};\n"),
            ("a.rs", "// crate::b is not used\nuse crate::{c::{x, y}, Cherry};\npub struct Apple;\n#[cfg(test)]\nmod tests {\n    use crate::b::pear;\n}\n"),
            ("b/mod.rs", b),
            ("b/tests.rs", "use crate::a::Apple;"),
            ("c/mod.rs", "mod inner;\nmod stone;\npub struct Cherry;\npub use inner::Core;\npub use stone::Stone as Pit;\n"),
            ("c/inner.rs", inner),
            ("c/stone.rs", "pub struct Stone;\nfn f() { println!(\"{}\", super::inner::CORES) }\n"),
            ("spoil.rs", "use crate::b::pear;"),
        ]
        .into_iter()
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .collect()
    };
    let uses = |b: &str| -> Vec<String> {
        let modules = Modules::of_files(&files(&format!("#[cfg(test)]\nmod tests;\n{b}"), ""));
        modules.level(&[])["b"].iter().map(|u| (*u).to_owned()).collect()
    };
    assert_eq!(uses("fn f() { crate::Apple::new() }\n"), ["a"]);
    assert_eq!(uses("use crate::Pit;\n"), ["c"]);
    assert_eq!(uses("use crate::{\n    Apple,\n    c::{Core, Cherry},\n};\n"), ["a", "c"]);
    assert_eq!(uses("pub use super::a;\n"), ["a"]);
    assert_eq!(uses("fn f() { vec![super::a::Apple] }\n"), ["a"]);
    assert!(uses("use other_crate::Apple;\nuse self::tests::b;\n").is_empty());
    // Circles at the root, in a folder, and a parent that defines an item that its child uses.
    let circles = |b: &str, inner: &str| Modules::of_files(&files(b, inner)).circles();
    assert!(circles("", "pub struct Core;\npub const CORES: u8 = 1;\n").is_empty());
    assert_eq!(
        circles("fn f() { crate::Apple::new() }\npub fn pear() {}\n", "use crate::plum;"),
        [["a", "c", "b"]]
    );
    assert_eq!(
        circles("", "use super::Pit;\npub const CORES: u8 = 1;\n"),
        [["c::inner", "c::stone"]]
    );
    // `a` also imports a name from the root.
    let mut parents = Modules::of_files(&files("", "use crate::Cherry;\n")).uses_of_parents();
    assert_eq!(
        parents.remove(0),
        ("a".to_owned(), "crate::Cherry, which is of crate::c".to_owned())
    );
    let owned = |user: &str, used: &str| (user.to_owned(), used.to_owned());
    assert_eq!(
        parents,
        [owned("c::inner", "crate::Cherry, which is of crate::c"), owned("c::inner", "crate::c")]
    );
}
