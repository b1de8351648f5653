//! Paths that are not regular files, or that lead out of the folder, are errors without any wait.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use burn_gnn_store::*;

/// Runs in a thread, so that a read that blocks on a pipe is a failure instead of a deadlock.
fn is_error(what: &'static str, open: impl FnOnce() -> Result<(), StoreError> + Send + 'static) {
    let (send, done) = channel();
    std::thread::spawn(move || send.send(open()));
    let found = done.recv_timeout(Duration::from_secs(60));
    let e = found.unwrap_or_else(|_| panic!("{what}: still reading")).unwrap_err();
    assert!(e.to_string().contains("expected a regular file, found a"), "{what}: {e}");
}

#[test]
fn pipes_and_devices_are_errors() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().to_owned();
    let pipe = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    };
    pipe(&dir.join("pipe"));
    for path in [dir.join("pipe"), PathBuf::from("/dev/zero")] {
        let at = || path.clone();
        let (a, b, c, d, e) = (at(), at(), at(), at(), at());
        is_error("csc", move || StoredCsc::open(a).map(drop));
        is_error("rows", move || StoredRows::open(b).map(drop));
        is_error("packed", move || PackedRows::open(c).map(drop));
        is_error("numbering", move || RawNumbers::<u64>::open(d).map(drop));
        is_error("renumbering", move || Renumbering::open(e).map(drop));
    }
    #[cfg(feature = "sampling")]
    {
        pipe(&dir.join("graph.json"));
        let folder = dir.clone();
        is_error("graph", move || StoredGraph::open(folder).map(drop));
        std::fs::remove_file(dir.join("graph.json")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.join("graph.json")).unwrap();
        let folder = dir.clone();
        is_error("graph", move || StoredGraph::open(folder).map(drop));
    }
    pipe(&dir.join("part-00000.nodes"));
    let folder = dir.clone();
    is_error("part", move || StoredPart::open(folder, 0).map(drop));
    // Files of a resumed build.
    let build = CscBuild::new(dir.join("csc"), 3, 3).with_memory(4 << 20);
    for name in ["journal", "csc", "run-00000"] {
        std::fs::create_dir(dir.join("csc.building")).unwrap();
        pipe(&dir.join("csc.building").join(name));
        let build = build.clone();
        is_error(name, move || build.run(EdgeIter::new([(0, 1)])).map(drop));
        std::fs::remove_dir_all(dir.join("csc.building")).unwrap();
    }
    build.run(EdgeIter::new([(0, 1)])).unwrap();
}

#[cfg(feature = "sampling")]
#[test]
fn descriptions_stay_in_their_folder() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("graph");
    std::fs::create_dir_all(dir.join("below")).unwrap();
    for path in [tmp.path().join("outside"), dir.join("below/inside")] {
        CscBuild::new(path, 3, 3).run(EdgeIter::new([(0, 1)])).unwrap();
    }
    let create =
        |file: &str| StoredGraph::create(&dir, [("_N", 3)], [(("_N", "_E", "_N"), file)]).map(drop);
    create("below/inside").unwrap();
    let text = std::fs::read_to_string(dir.join("graph.json")).unwrap();
    let outside = tmp.path().join("outside");
    for wrong in ["../outside", "below/../../outside", outside.to_str().unwrap(), "", "."] {
        let e = create(wrong).unwrap_err();
        assert!(e.to_string().contains("expected a relative path inside the folder"), "{e}");
        std::fs::write(dir.join("graph.json"), text.replace("below/inside", wrong)).unwrap();
        let e = StoredGraph::open(&dir).unwrap_err();
        assert!(e.to_string().contains("graph.json: file name: expected a relative path"), "{e}");
    }
    // Links may lead out of the folder.
    std::os::unix::fs::symlink(&outside, dir.join("link")).unwrap();
    create("link").unwrap();
    assert_eq!(StoredGraph::open(&dir).unwrap().graph().total_edges(), 1);
}
