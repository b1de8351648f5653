//! Tests that the derived data of a relation are accounted for, freed, and computed again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Compressed, LayoutArrays, Relation};
use crate::arrays::shared_array::U32Array;
use crate::memory::bytes::{Bytes, CountBytes};

const NODES: u32 = 40;

fn relation() -> Relation {
    let (src, dst) =
        (0..1000u32).map(|e| (e.wrapping_mul(7) % NODES, e.wrapping_mul(13) % NODES)).unzip();
    Relation::from_coo(NODES as usize, NODES as usize, src, dst).unwrap()
}

/// All that is derived, as plain numbers.
fn derived(r: &Relation) -> Vec<Vec<u32>> {
    let layout = |l: &Compressed| {
        [l.indptr().to_vec(), l.indices().to_vec(), l.edge_ids().unwrap_or_default().to_vec()]
    };
    let sorted = r.sorted_by_dst();
    let order = r.dst_order().map(|order| order.src().to_vec()).unwrap_or_default();
    [layout(r.csc()), layout(r.csr()), [sorted.src().to_vec(), sorted.dst().to_vec(), order]]
        .concat()
}

#[test]
fn bytes_grow_with_what_is_made() {
    let r = relation();
    let mut last = r.derived_bytes();
    assert_eq!(last, Bytes::default(), "edges do not count");
    let mut grows = |what: &str| {
        let now = r.derived_bytes();
        assert!(now.host > last.host || now.device > last.device, "{what}: {last:?} to {now:?}");
        last = now;
    };
    r.csc();
    grows("layout by destination");
    r.csr();
    grows("layout by source");
    let _ = r.sorted_by_dst();
    grows("renumbered edges");
    r.dst_order();
    grows("their order");
    r.csc().attached().get_or_insert("scale", || vec![0f64; 40]);
    grows("a value attached to a layout");
    r.src_attached().get_or_insert_sized("copy", || (), |()| Bytes::device(4000));
    grows("a copy on a device");
    assert_eq!(r.reverse().derived_bytes(), last);
}

#[test]
fn clear_derived_frees_and_recomputes() {
    let mut r = relation();
    let (first, bytes) = (derived(&r), r.derived_bytes());
    let attached = [
        r.csc().attached().get_or_insert((), || vec![1u8]),
        r.dst_attached().get_or_insert((), || vec![2u8]),
    ];
    let of_sorted = r.sorted_by_dst().csr().attached().get_or_insert((), || vec![3u8]);
    let gone: Vec<_> = attached.iter().chain([&of_sorted]).map(Arc::downgrade).collect();
    drop((attached, of_sorted));
    assert!(gone.iter().all(|value| value.upgrade().is_some()));
    let clone = r.clone();
    r.clear_derived();
    assert_eq!(r.derived_bytes(), Bytes::default());
    // Attached values are removed for the clone too; its layouts are kept.
    assert!(gone.iter().all(|value| value.upgrade().is_none()));
    assert!(clone.derived_bytes().host >= bytes.host && clone.is_same(&r) && clone == r);
    assert_eq!((derived(&r), derived(&clone), r.derived_bytes()), (first.clone(), first, bytes));
    // The reversed relation shares the caches.
    let (mut back, gone) =
        (r.reverse(), Arc::downgrade(&r.csr().attached().get_or_insert((), || 5u8)));
    back.clear_derived();
    assert!(gone.upgrade().is_none());
}

/// Layouts of shared memory are validated on construction and cannot be built again.
#[test]
fn clear_derived_keeps_layouts_of_shared_memory() {
    let own = relation();
    let arrays = |l: &Compressed| LayoutArrays {
        indptr: l.indptr().to_vec(),
        indices: U32Array::shared(Arc::new(l.indices().to_vec())),
        edge_ids: l.edge_ids().map(<[u32]>::to_vec),
    };
    let words = |ids: &[u32]| U32Array::shared(Arc::new(ids.to_vec()));
    let (nodes, csc, csr) = (own.num_src(), arrays(own.csc()), arrays(own.csr()));
    let mut r =
        Relation::from_layouts(nodes, nodes, words(own.src()), words(own.dst()), csc, csr).unwrap();
    r.csc().attached().get_or_insert((), || vec![1u8; 100]);
    let before = r.csc().indptr().as_ptr();
    r.clear_derived();
    assert_eq!((r.csc().indptr().as_ptr(), r.csc().attached().bytes()), (before, Bytes::default()));
    assert_eq!(derived(&r), derived(&own));
}

/// Threads read and fill caches that another thread clears.
#[test]
fn clear_derived_in_parallel_with_readers() {
    let (r, done) = (relation(), AtomicBool::new(false));
    let want = derived(&r);
    let rounds = if cfg!(miri) { 3 } else { 200 };
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                let mut own = r.clone();
                while !done.load(Ordering::SeqCst) {
                    assert_eq!(derived(&own), want);
                    assert_eq!(
                        *own.csc().attached().get_or_insert("sum", || own
                            .csc()
                            .indices()
                            .iter()
                            .sum::<u32>()),
                        r.src().iter().sum()
                    );
                    assert!(own.derived_bytes().host > 0);
                    own = r.clone();
                }
            });
        }
        let mut own = r.clone();
        for _ in 0..rounds {
            own.clear_derived();
            assert_eq!(derived(&own), want);
            own = r.clone();
        }
        done.store(true, Ordering::SeqCst);
    });
}
