//! Killed writers and full disks. `tests/faults.sh` kills each writer a hundred times.

use std::io::Write;
use std::path::Path;

use burn_gnn_store::*;
use burn_gnn_structure::EdgeReader;
use burn_gnn_testutil::faults::{files, full_disk, killed, small_disk, write_until_killed};

type Written = Result<(), StoreError>;

/// Nodes of every file, more than there are versions.
const NODES: u32 = 4000;

/// Edge `i` of a version. Its source encodes the version.
fn edge(i: u32, version: u64) -> (u32, u32) {
    ((i + version as u32) % NODES, i.wrapping_mul(2_654_435_761) % NODES)
}

/// A build of a version. A killed build of another version is removed, and one of this version is resumed.
fn build(dir: &Path, version: u64, edges: u32) -> Result<BuildStats, StoreError> {
    let build = CscBuild::new(dir.join("csc"), NODES as usize, NODES as usize)
        .with_memory(4 << 20)
        .with_edge_ids()
        .with_stream_name(format!("version {version}"));
    let stream = || EdgeIter::new((0..edges).map(move |i| edge(i, version)));
    match build.run(stream()) {
        Err(StoreError::Resume { path, .. }) => {
            std::fs::remove_dir_all(path).unwrap();
            build.run(stream())
        }
        built => built,
    }
}

fn built(dir: &Path) -> Option<u64> {
    let path = dir.join("csc");
    path.exists().then(|| {
        let csc = StoredCsc::open(path).unwrap();
        csc.verify().unwrap();
        let (mut src, mut ids) = (vec![], vec![]);
        csc.sources_of(0..csc.num_edges(), &mut src).unwrap();
        csc.edge_ids_of(0..csc.num_edges(), &mut ids).unwrap();
        let version = u64::from((src[0] + NODES - ids[0] as u32 % NODES) % NODES);
        assert!(src.iter().zip(&ids).all(|(&u, &id)| u == edge(id as u32, version).0));
        ids.sort_unstable();
        assert!(ids.into_iter().eq(0..csc.num_edges()));
        version
    })
}

fn rows(dir: &Path, version: u64) -> Written {
    let mut out = RowWriter::create(dir.join("rows"), 1000, 8, RowFormat::F32)?;
    for _ in 0..10 {
        out.put(&[version as f32; 800])?;
    }
    out.finish().map(drop)
}

fn rows_of(dir: &Path) -> Option<u64> {
    let path = dir.join("rows");
    path.exists().then(|| {
        let rows = StoredRows::open(path).unwrap();
        rows.verify().unwrap();
        let all = rows.gather(&(0..1000).collect::<Vec<_>>()).unwrap();
        assert!(all.iter().all(|x| *x == all[0]));
        all[0] as u64
    })
}

fn numbering(dir: &Path, version: u64, count: u64) -> Written {
    let ids = (0..count).map(|i| Ok((version << 32) | (i.wrapping_mul(48_271) % 100_003)));
    RawNumbers::build(dir.join("ids"), 1 << 20, ids).map(drop)
}

fn numbered(dir: &Path) -> Option<u64> {
    let path = dir.join("ids");
    path.exists().then(|| {
        let numbers = RawNumbers::<u64>::open(path).unwrap();
        let of = |number: u32| numbers.id(number).unwrap() >> 32;
        assert!((0..numbers.len() as u32).all(|number| of(number) == of(0)));
        of(0)
    })
}

fn renumbering(dir: &Path, version: u64) -> Written {
    let ids = (0..NODES).map(|i| (i + version as u32) % NODES).collect();
    Renumbering::new(ids)?.write(dir.join("nodes"))
}

fn renumbered(dir: &Path) -> Option<u64> {
    let path = dir.join("nodes");
    path.exists().then(|| u64::from(Renumbering::open(path).unwrap().original_ids()[0]))
}

/// The ids of the batches of a version; their number depends on it.
fn batches(version: u64) -> impl Iterator<Item = Vec<u32>> {
    (0..=version as u32).map(|i| vec![i % 1000, (i + 500) % 1000])
}

fn packed(dir: &Path, version: u64) -> Written {
    if !dir.join("rows").exists() {
        rows(dir, 7)?;
    }
    let rows = StoredRows::open(dir.join("rows"))?;
    PackedRows::write(dir.join("packed"), &rows, 4096, || batches(version).map(Ok)).map(drop)
}

fn packed_of(dir: &Path) -> Option<u64> {
    let path = dir.join("packed");
    path.exists().then(|| {
        let packed = PackedRows::open(path).unwrap();
        packed.verify().unwrap();
        let version = packed.batches() as u64 - 1;
        for (i, ids) in batches(version).enumerate() {
            assert!(packed.gather(i, &ids).unwrap().iter().all(|x| *x == 7.0));
        }
        version
    })
}

#[cfg(feature = "sampling")]
fn described(dir: &Path, version: u64) -> Written {
    if !dir.join("csc").exists() {
        build(dir, 0, 1000)?;
    }
    let relation = format!("version-{version}");
    let relations = [(("_N", relation.as_str(), "_N"), "csc")];
    StoredGraph::create(dir, [("_N", NODES as usize)], relations).map(drop)
}

#[cfg(feature = "sampling")]
fn described_of(dir: &Path) -> Option<u64> {
    dir.join("graph.json").exists().then(|| {
        let stored = StoredGraph::open(dir).unwrap();
        stored.graph().schema().etypes()[0].relation["version-".len()..].parse().unwrap()
    })
}

/// Parts of a version in a separate folder, since writing removes existing parts.
fn parts(dir: &Path, version: u64) -> Written {
    if !dir.join("csc").exists() {
        build(dir, 0, 5000)?;
    }
    let csc = StoredCsc::open(dir.join("csc"))?;
    let part_of = (0..NODES).map(|v| (v + version as u32) % 3).collect();
    Assignment::new(part_of, 3)?.write(&csc, dir.join(format!("parts-{version}"))).map(drop)
}

/// The last complete folder of parts. An incomplete folder lacks a file.
fn parts_of(dir: &Path) -> Option<u64> {
    let mut found = None;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(version) = name.strip_prefix("parts-") else { continue };
        let version: u64 = version.parse().unwrap();
        let csc = StoredCsc::open(dir.join("csc")).unwrap();
        match StoredParts::open(&path).and_then(|parts| parts.verify(&csc)) {
            Ok(()) => {
                let part = StoredPart::open(&path, 0).unwrap();
                assert_eq!(part.inner(..)[0], (3 - (version % 3) as u32) % 3);
                found = found.max(Some(version));
            }
            Err(e) => assert!(e.to_string().contains("No such file"), "{e}"),
        }
    }
    found
}

#[test]
fn builds_to_be_killed() {
    write_until_killed(|dir, version| {
        let stats = build(dir, version, 600_000).unwrap();
        if stats.resumed > 0 {
            let mut log = std::fs::File::options();
            let log = log.create(true).append(true).open(dir.join("resumed"));
            log.unwrap().write_all(b".").unwrap();
        }
    });
}

#[test]
fn rows_to_be_killed() {
    write_until_killed(|dir, version| rows(dir, version).unwrap());
}

#[test]
fn numberings_to_be_killed() {
    write_until_killed(|dir, version| numbering(dir, version, 100_000).unwrap());
}

#[test]
fn renumberings_to_be_killed() {
    write_until_killed(|dir, version| renumbering(dir, version).unwrap());
}

#[test]
fn packed_rows_to_be_killed() {
    write_until_killed(|dir, version| packed(dir, version).unwrap());
}

#[cfg(feature = "sampling")]
#[test]
fn descriptions_to_be_killed() {
    write_until_killed(|dir, version| described(dir, version).unwrap());
}

#[test]
fn parts_to_be_killed() {
    write_until_killed(|dir, version| parts(dir, version).unwrap());
}

/// After a kill, every writer leaves the old or the new content, and the next write removes temporary files.
#[test]
fn writers_killed_at_any_moment() {
    let left = |dir: &tempfile::TempDir| {
        let files = files(dir.path());
        files
            .iter()
            .map(|f| f.file_name().unwrap().to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let dir = killed("graph build", "faults::builds_to_be_killed", built);
    let log = dir.path().join("resumed");
    let resumed = std::fs::read(&log).unwrap_or_default().len();
    println!("graph build: {resumed} builds went on from what a killed one had left");
    let _ = std::fs::remove_file(&log);
    build(dir.path(), 0, 600_000).unwrap();
    assert_eq!(left(&dir), ["csc"]);
    let dir = killed("rows", "faults::rows_to_be_killed", rows_of);
    rows(dir.path(), 0).unwrap();
    assert_eq!(left(&dir), ["rows"]);
    let dir = killed("numbering", "faults::numberings_to_be_killed", numbered);
    numbering(dir.path(), 0, 100_000).unwrap();
    assert_eq!(left(&dir), ["ids"]);
    let dir = killed("renumbering", "faults::renumberings_to_be_killed", renumbered);
    renumbering(dir.path(), 0).unwrap();
    assert_eq!(left(&dir), ["nodes"]);
    let dir = killed("packed rows", "faults::packed_rows_to_be_killed", packed_of);
    packed(dir.path(), 0).unwrap();
    assert_eq!(left(&dir), ["packed", "rows"]);
    #[cfg(feature = "sampling")]
    {
        let dir = killed("graph description", "faults::descriptions_to_be_killed", described_of);
        described(dir.path(), 0).unwrap();
        assert_eq!(left(&dir), ["csc", "graph.json"]);
    }
    let dir = killed("parts", "faults::parts_to_be_killed", parts_of);
    parts(dir.path(), 0).unwrap();
    let csc = StoredCsc::open(dir.path().join("csc")).unwrap();
    StoredParts::open(dir.path().join("parts-0")).unwrap().verify(&csc).unwrap();
}

#[test]
fn writers_on_a_full_disk() {
    let Some(disk) = small_disk("faults::writers_on_a_full_disk", 1024) else { return };
    let name = |version: Option<u64>| if version == Some(1) { "old" } else { "new" };
    let text = |e: StoreError| e.to_string();
    // The next build resumes from the files of a failed one.
    let write = |dir: &Path| {
        build(dir, 2, 2000).map(drop).map_err(|e| {
            let _ = std::fs::remove_dir_all(dir.join("csc.building"));
            text(e)
        })
    };
    let old = |dir: &Path| _ = build(dir, 1, 2000).unwrap();
    full_disk("graph build", &disk, old, write, |d| name(built(d)));
    let write = |version| move |dir: &Path| rows(dir, version).map_err(text);
    full_disk("rows", &disk, |d| write(1)(d).unwrap(), write(2), |d| name(rows_of(d)));
    let write = |version| move |dir: &Path| numbering(dir, version, 5000).map_err(text);
    full_disk("numbering", &disk, |d| write(1)(d).unwrap(), write(2), |d| name(numbered(d)));
    let write = |version| move |dir: &Path| renumbering(dir, version).map_err(text);
    full_disk("renumbering", &disk, |d| write(1)(d).unwrap(), write(2), |d| name(renumbered(d)));
    let write = |version| move |dir: &Path| packed(dir, version).map_err(text);
    full_disk("packed rows", &disk, |d| write(1)(d).unwrap(), write(2), |d| name(packed_of(d)));
    #[cfg(feature = "sampling")]
    {
        let write = |version| move |dir: &Path| described(dir, version).map_err(text);
        let old = |d: &Path| write(1)(d).unwrap();
        full_disk("graph description", &disk, old, write(2), |d| name(described_of(d)));
    }
    // An incomplete folder of parts is not a partitioning.
    let write = |dir: &Path| {
        parts(dir, 2).map_err(|e| {
            assert_eq!(parts_of(dir), Some(1));
            let _ = std::fs::remove_dir_all(dir.join("parts-2"));
            text(e)
        })
    };
    full_disk("parts", &disk, |d| parts(d, 1).unwrap(), write, |d| name(parts_of(d)));
}
