//! Checks contents, links, snippets and pictures of the book.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The Markdown files of `docs/`, by name.
fn pages() -> BTreeSet<String> {
    let files = fs::read_dir(root().join("docs")).unwrap();
    files
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md"))
        .collect()
}

/// Lines outside of code blocks.
fn prose(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let mut keep = |line: &&str| {
        let fence = line.starts_with("```");
        in_code ^= fence;
        !fence && !in_code
    };
    text.lines().filter(|line| keep(line)).collect()
}

/// A code block: its first line, the text after the three backticks, its lines.
struct Code<'a> {
    line: usize,
    language: &'a str,
    lines: Vec<&'a str>,
}

fn code_blocks(text: &str) -> Vec<Code<'_>> {
    let mut blocks = vec![];
    let mut open: Option<Code<'_>> = None;
    for (i, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open = Some(Code { line: i + 1, language: language.trim(), lines: vec![] });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(code)) => code.lines.push(line),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a code block does not end");
    blocks
}

/// The pages, the README and the list of examples, as paths from the root.
fn texts() -> Vec<PathBuf> {
    let pages = pages().into_iter().map(|page| Path::new("docs").join(page));
    pages.chain(["README.md".into(), "examples/README.md".into()]).collect()
}

/// Returns the targets of links `[text](target)` outside of inline code.
fn links(text: &str) -> Vec<String> {
    let lines = prose(text).join("\n");
    let without_code: String = lines.split('`').step_by(2).collect();
    let targets = without_code.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// Returns the anchors of all headings, in the format of GitHub and mdBook.
fn anchors(text: &str) -> BTreeSet<String> {
    let slug = |heading: &str| {
        let kept = heading
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .collect::<String>();
        kept.replace(' ', "-")
    };
    let headings = prose(text).into_iter().filter(|line| line.starts_with('#'));
    headings.map(|line| slug(line.trim_start_matches('#').trim())).collect()
}

#[test]
fn links_and_anchors_of_a_text() {
    let text =
        "# A `b` in C++, d\n```sh\n# no heading [x](y)\n```\n[a](b.md#c) `[v](w)` [d](https://e)\n";
    assert_eq!(links(text), ["b.md#c", "https://e"]);
    assert_eq!(anchors(text), ["a-b-in-c-d".to_owned()].into());
}

#[test]
fn every_page_is_in_the_summary_once() {
    let in_summary = links(&read(&root().join("docs/SUMMARY.md")));
    let listed: BTreeSet<String> = in_summary.iter().cloned().collect();
    assert_eq!(listed.len(), in_summary.len(), "SUMMARY.md lists a page twice: {in_summary:?}");
    let mut pages = pages();
    assert!(pages.remove("SUMMARY.md"), "docs/SUMMARY.md");
    assert_eq!(listed, pages, "left: entries of SUMMARY.md, right: files in docs/");
}

#[test]
fn the_snippets_of_every_page_are_compiled() {
    let compiled = include_str!("lib.rs");
    for page in pages().iter().filter(|page| *page != "SUMMARY.md") {
        assert!(
            compiled.contains(&format!("docs/{page}\"")),
            "tests/src/lib.rs does not include docs/{page}"
        );
    }
}

/// Resolves a link to a path from the root and an anchor; `None` for links out of the repository.
fn target(file: &Path, link: &str) -> Option<(PathBuf, Option<String>)> {
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (link, None),
    };
    let path = match path.strip_prefix("https://github.com/burn-gnn/burn-gnn/blob/main/") {
        Some(path) => path.into(),
        None if path.contains("://") => return None,
        None if path.is_empty() => file.to_owned(),
        None => file.parent()?.join(path),
    };
    Some((path, anchor))
}

/// Pages of the book link to files outside of `docs/` by URL, because mdBook copies only `docs/`.
#[test]
fn every_link_into_the_repository_leads_to_a_file_and_a_heading() {
    let mut wrong = vec![];
    for file in texts() {
        for link in links(&read(&root().join(&file))) {
            let Some((path, anchor)) = target(&file, &link) else { continue };
            let leaves_the_book = file.starts_with("docs") && link.starts_with("..");
            let path = root().join(path);
            let found = path.exists() && anchor.is_none_or(|a| anchors(&read(&path)).contains(&a));
            if !found || leaves_the_book {
                wrong.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "links to no file or heading, or out of docs/:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn code_blocks_of_a_text() {
    let text = "a\n```rust\nfn main() {}\n# hidden\n```\n# heading\n```sh\n# comment\n```\n";
    let blocks = code_blocks(text);
    let found: Vec<_> = blocks.iter().map(|b| (b.line, b.language, b.lines.len())).collect();
    assert_eq!(found, [(2, "rust", 2), (7, "sh", 1)]);
    assert_eq!(hidden_lines(&blocks[0]), 1);
}

/// Counts the lines that rustdoc hides and GitHub shows.
fn hidden_lines(code: &Code<'_>) -> usize {
    code.lines.iter().filter(|line| line.starts_with("# ") || **line == "#").count()
}

/// Snippets can be copied from GitHub into `main.rs`: they have no hidden lines, and a `main`.
#[test]
fn every_snippet_is_a_whole_program() {
    let mut wrong = vec![];
    for file in texts() {
        let text = read(&root().join(&file));
        for code in code_blocks(&text) {
            if !code.language.starts_with("rust") || code.language.contains("ignore") {
                continue;
            }
            let has_main = code.lines.iter().any(|line| line.starts_with("fn main() "));
            if hidden_lines(&code) > 0 || !has_main {
                wrong.push(format!("{}:{}", file.display(), code.line));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "snippets with hidden lines or without `main`:\n{}",
        wrong.join("\n")
    );
}

/// Created by `cargo run --release --features plot --example pictures`.
#[test]
fn every_picture_is_small_and_shown() {
    let shown: String = texts().iter().map(|file| read(&root().join(file))).collect();
    let files = fs::read_dir(root().join("docs/img")).unwrap();
    let mut pictures = 0;
    for path in files.map(|f| f.unwrap().path()) {
        let (svg, name) = (read(&path), path.file_name().unwrap().to_str().unwrap());
        assert!(svg.starts_with("<svg") && svg.len() < 60_000, "{name}: {} bytes", svg.len());
        assert!(shown.contains(&format!("img/{name})")), "no page shows {name}");
        pictures += 1;
    }
    assert!(pictures >= 3);
}

/// The example draws the pictures of `docs/img`: the nodes are equal, the layout may differ.
#[test]
fn pictures_are_drawn_by_their_example() {
    use crate::pictures::{neighbours_of_a_crate, partition_of_the_club};
    for (name, drawn) in [
        ("graph.svg", neighbours_of_a_crate().unwrap()),
        ("partition.svg", partition_of_the_club().unwrap()),
    ] {
        let nodes = |svg: &str| svg.matches("<circle").count();
        let committed = read(&root().join("docs/img").join(name));
        assert!(nodes(&drawn) > 10, "{name}: {}", nodes(&drawn));
        assert_eq!(nodes(&drawn), nodes(&committed), "{name}: run the example `pictures` again");
    }
}

/// Returns the names that a crate exports by `pub use`.
fn exported(source: &str) -> BTreeSet<&str> {
    let uses = source.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next());
    uses.filter_map(|path| Some(path.rsplit_once("::")?.1))
        .flat_map(|names| names.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .filter(|name| !name.is_empty())
        .collect()
}

/// The tables of `burn_gnn::models` list every layer, model and function; a config is listed by its
/// layer.
#[test]
fn the_tables_of_models_are_complete() {
    let source = read(&root().join("crates/models/src/lib.rs"));
    let header = read(&root().join("src/models.rs"));
    let names = exported(&source);
    assert!(names.len() > 100, "{names:?}");
    let has = |name: &str| header.contains(&format!("[`{name}`]"));
    let missing: Vec<_> =
        names.iter().filter(|n| !has(n) && !n.strip_suffix("Config").is_some_and(has)).collect();
    assert!(missing.is_empty(), "src/models.rs does not name {missing:?}");
}

/// The table of cargo features in the book lists exactly the features of the manifest.
#[test]
fn every_cargo_feature_is_in_the_book() {
    let manifest = read(&root().join("Cargo.toml"));
    let of_features =
        manifest.split("[features]\n").nth(1).and_then(|rest| rest.split("\n[").next());
    let lines = of_features.unwrap().lines();
    let features: BTreeSet<&str> = lines
        .filter_map(|line| Some(line.split_once(" = ")?.0))
        .filter(|f| *f != "default")
        .collect();
    let page = read(&root().join("docs/getting-started.md"));
    let table =
        page.split("| feature |").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let names = table.lines().filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
    let listed: BTreeSet<&str> =
        names.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert_eq!(listed, features, "left: docs/getting-started.md, right: Cargo.toml");
}
