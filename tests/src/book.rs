//! Checks the contents and the links of the book.

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

/// Targets of the links `[text](target)`, inline code left out.
fn links(text: &str) -> Vec<String> {
    let lines = prose(text).join("\n");
    let without_code: String = lines.split('`').step_by(2).collect();
    let targets = without_code.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// The anchors of all headings, as GitHub and mdBook make them.
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

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let files =
        pages().into_iter().map(|page| Path::new("docs").join(page)).chain(["README.md".into()]);
    let mut wrong = vec![];
    for file in files {
        let text = read(&root().join(&file));
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (path, anchor) = link
                .split_once('#')
                .map_or((&link[..], None), |(path, anchor)| (path, Some(anchor)));
            let target =
                if path.is_empty() { file.clone() } else { file.parent().unwrap().join(path) };
            let target = root().join(target);
            let found = target.exists()
                && anchor.is_none_or(|anchor| anchors(&read(&target)).contains(anchor));
            if !found {
                wrong.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links to no file or heading:\n{}", wrong.join("\n"));
}

/// The table of cargo features in the book has all of them, and no others.
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
