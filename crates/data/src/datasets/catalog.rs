//! The list of known data sets with addresses, checksums and licences.

use std::path::Path;
use std::str::FromStr;

use burn_gnn_files::DataError;

use crate::dataset::Dataset;
use crate::datasets::crates_graph::crates_graph;
use crate::datasets::data_home::DataHome;
use crate::datasets::karate::karate_club;
use crate::datasets::planetoid;
#[cfg(feature = "rdf")]
use crate::datasets::rdf_datasets;
#[cfg(feature = "npz")]
use crate::datasets::reddit;
use crate::datasets::remote_file::{DatasetInfo, RemoteFile};

/// A published data set for node classification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Known {
    /// Zachary's karate club. Built into the library.
    Karate,
    /// 712 crates on which this library depends, with authors, keywords and licences, 39 categories. Built into the
    /// library.
    Crates,
    /// Citations of 2,708 papers, 7 topics.
    Cora,
    /// Citations of 3,327 papers, 6 topics.
    Citeseer,
    /// Citations of 19,717 papers, 3 topics.
    Pubmed,
    /// 8,285 entities of a research institute, 4 groups.
    Aifb,
    /// 23,644 entities about molecules, 2 classes.
    Mutag,
    /// 333,845 entities about rock units, 2 classes.
    Bgs,
    /// 1,666,764 entities about artefacts of a museum, 11 classes.
    Am,
    /// 232,965 posts, 114,615,892 edges, 41 communities.
    Reddit,
    /// Citations of 169,343 papers, 40 subject areas.
    OgbnArxiv,
    /// 2,449,029 products, 47 categories.
    OgbnProducts,
    /// 1,939,743 nodes of 4 types, 349 venues.
    OgbnMag,
}

const fn file(
    name: &'static str,
    url: &'static str,
    sha256: &'static str,
    most: u64,
) -> RemoteFile {
    RemoteFile { name, url, sha256: if sha256.is_empty() { None } else { Some(sha256) }, most }
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Files of a Planetoid data set, with the SHA-256 of `x`, `tx`, `allx`, `y`, `ty`, `ally`, `graph` and `test.index` in
/// the authors' repository. An empty SHA-256 is not known.
macro_rules! planetoid {
    ($name:literal, [$x:literal, $tx:literal, $allx:literal, $y:literal, $ty:literal, $ally:literal, $graph:literal, $test:literal]) => {{
        const FILES: &[RemoteFile] = &[
            planetoid!($name, "x", $x),
            planetoid!($name, "tx", $tx),
            planetoid!($name, "allx", $allx),
            planetoid!($name, "y", $y),
            planetoid!($name, "ty", $ty),
            planetoid!($name, "ally", $ally),
            planetoid!($name, "graph", $graph),
            planetoid!($name, "test.index", $test),
        ];
        FILES
    }};
    ($name:literal, $part:literal, $sha256:literal) => {
        file(
            concat!("ind.", $name, ".", $part),
            concat!(
                "https://github.com/kimiyoung/planetoid/raw/master/data/ind.",
                $name,
                ".",
                $part
            ),
            $sha256,
            64 * MIB,
        )
    };
}

/// Files of an RDF data set of the R-GCN paper, as DGL publishes it.
macro_rules! entities {
    ($name:literal, $most:expr) => {{
        const URL: &str = concat!("https://data.dgl.ai/dataset/", $name, ".tgz");
        const FILES: &[RemoteFile] = &[
            file(concat!($name, "_stripped.nt.gz"), URL, "", $most),
            file("completeDataset.tsv", URL, "", $most),
            file("trainingSet.tsv", URL, "", $most),
            file("testSet.tsv", URL, "", $most),
        ];
        FILES
    }};
}

/// Folders of a data set of the Open Graph Benchmark.
macro_rules! ogb {
    ($name:literal, $sha256:literal, $most:expr) => {{
        const URL: &str =
            concat!("https://snap.stanford.edu/ogb/data/nodeproppred/", $name, ".zip");
        const FILES: &[RemoteFile] =
            &[file("raw", URL, $sha256, $most), file("split", URL, $sha256, $most)];
        FILES
    }};
}

const CORA: &[RemoteFile] = planetoid!(
    "cora",
    [
        "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
        "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"
    ]
);
const CITESEER: &[RemoteFile] = planetoid!(
    "citeseer",
    [
        "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
        "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
        "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"
    ]
);
const PUBMED: &[RemoteFile] = planetoid!(
    "pubmed",
    [
        "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "",
        "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
        "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5"
    ]
);

const REDDIT: &[RemoteFile] = &[
    file("reddit_data.npz", "https://data.dgl.ai/dataset/reddit.zip", "", 8 * GIB),
    file("reddit_graph.npz", "https://data.dgl.ai/dataset/reddit.zip", "", 8 * GIB),
];

const PLANETOID: &str = "Sen et al., Collective classification in network data, AI Magazine 29(3), 2008; \
     Yang, Cohen, Salakhutdinov, Revisiting semi-supervised learning with graph embeddings, ICML 2016";
const RGCN: &str = "Ristoski, de Vries, Paulheim, A collection of benchmark datasets for systematic evaluations of machine learning on the \
     semantic web, ISWC 2016; Schlichtkrull et al., Modeling relational data with graph convolutional networks, ESWC 2018";
const OGB: &str =
    "Hu et al., Open Graph Benchmark: datasets for machine learning on graphs, NeurIPS 2020";
const NO_LICENCE: &str = "none stated; for research";

impl Known {
    /// All known data sets.
    pub const ALL: [Self; 13] = [
        Self::Karate,
        Self::Crates,
        Self::Cora,
        Self::Citeseer,
        Self::Pubmed,
        Self::Aifb,
        Self::Mutag,
        Self::Bgs,
        Self::Am,
        Self::Reddit,
        Self::OgbnArxiv,
        Self::OgbnProducts,
        Self::OgbnMag,
    ];

    /// Name of the data set and of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Karate => "karate",
            Self::Crates => "crates",
            Self::Cora => "cora",
            Self::Citeseer => "citeseer",
            Self::Pubmed => "pubmed",
            Self::Aifb => "aifb",
            Self::Mutag => "mutag",
            Self::Bgs => "bgs",
            Self::Am => "am",
            Self::Reddit => "reddit",
            Self::OgbnArxiv => "ogbn-arxiv",
            Self::OgbnProducts => "ogbn-products",
            Self::OgbnMag => "ogbn-mag",
        }
    }

    /// Source, licence and citation.
    pub fn about(self) -> DatasetInfo {
        let (licence, citation, files): (_, _, &'static [RemoteFile]) = match self {
            Self::Karate => (
                "facts of a paper",
                "Zachary, An information flow model for conflict and fission in small groups, 1977",
                &[],
            ),
            Self::Crates => (
                "facts of manifests",
                "`cargo metadata` of this project (example `crates_graph`)",
                &[],
            ),
            Self::Cora => (NO_LICENCE, PLANETOID, CORA),
            Self::Citeseer => (NO_LICENCE, PLANETOID, CITESEER),
            Self::Pubmed => (NO_LICENCE, PLANETOID, PUBMED),
            Self::Aifb => (NO_LICENCE, RGCN, entities!("aifb", 256 * MIB)),
            Self::Mutag => (NO_LICENCE, RGCN, entities!("mutag", 256 * MIB)),
            Self::Bgs => {
                ("Open Government Licence (British Geological Survey)", RGCN, entities!("bgs", GIB))
            }
            Self::Am => ("CC BY-SA (Amsterdam Museum)", RGCN, entities!("am", 4 * GIB)),
            Self::Reddit => (
                NO_LICENCE,
                "Hamilton, Ying, Leskovec, Inductive representation learning on large graphs, NeurIPS 2017",
                REDDIT,
            ),
            Self::OgbnArxiv => ("ODC-BY", OGB, ogb!("arxiv", "", 512 * MIB)),
            Self::OgbnProducts => ("Amazon licence", OGB, ogb!("products", "", 8 * GIB)),
            Self::OgbnMag => ("ODC-BY", OGB, ogb!("mag", "", 2 * GIB)),
        };
        DatasetInfo { licence, citation, files }
    }

    /// Loads the data set from the default folder, [`DataHome::new`].
    ///
    /// # Errors
    /// Those of [`load_from`](Self::load_from).
    pub fn load(self) -> Result<Dataset, DataError> {
        self.load_from(&DataHome::new())
    }

    /// Loads the data set from its folder in `home`. Missing files are downloaded unless `home` is
    /// [`offline`](DataHome::offline).
    ///
    /// # Errors
    /// * [`DataError::DataMissing`] if files are missing and downloads are disabled. It lists each file, its address and
    ///   its folder.
    /// * `DataError::Download` if a download fails.
    /// * [`DataError::Feature`] if the cargo feature of the data set is not enabled.
    /// * The errors of the reader of the format.
    ///
    /// # Cost
    /// Memory: that of the reader of the format. The pickles of Cora, Citeseer and PubMed take at most 16 bytes for each
    /// byte of the files and 8 MiB, damaged ones included.
    pub fn load_from(self, home: &DataHome) -> Result<Dataset, DataError> {
        let progress = home.progress();
        let read = |load: &dyn Fn(&Path) -> Result<Dataset, DataError>| {
            let dir = home.provide(self.name(), &self.about())?;
            load(&dir).map_err(|e| e.in_file(&dir))
        };
        let set = match self {
            Self::Karate => return Ok(karate_club()),
            Self::Crates => return Ok(crates_graph()),
            Self::Cora | Self::Citeseer | Self::Pubmed => {
                read(&|dir| planetoid::load(dir, self.name()))
            }
            #[cfg(feature = "rdf")]
            Self::Aifb | Self::Mutag | Self::Bgs | Self::Am => {
                read(&|dir| rdf_datasets::load(dir, self.name(), progress))
            }
            #[cfg(not(feature = "rdf"))]
            Self::Aifb | Self::Mutag | Self::Bgs | Self::Am => {
                Err(crate::files::missing_feature(self.name(), "rdf"))
            }
            #[cfg(feature = "npz")]
            Self::Reddit => read(&reddit::load),
            #[cfg(not(feature = "npz"))]
            Self::Reddit => Err(crate::files::missing_feature(self.name(), "npz")),
            Self::OgbnArxiv | Self::OgbnProducts | Self::OgbnMag => {
                read(&|dir| crate::layouts::ogb::load(dir, progress))
            }
        };
        let mut set = set?;
        set.name = self.name().to_owned();
        Ok(set)
    }
}

impl FromStr for Known {
    type Err = DataError;

    /// Finds a data set by its [`name`](Self::name).
    fn from_str(name: &str) -> Result<Self, DataError> {
        let found = Self::ALL.into_iter().find(|k| k.name() == name);
        let names: Vec<&str> = Self::ALL.iter().map(|k| k.name()).collect();
        found.ok_or_else(|| {
            crate::files::setting("data set", &format!("one of {}", names.join(", ")), name)
        })
    }
}
