//! Which sets there are, where they come from, and under which terms.

use std::str::FromStr;

use super::DataHome;
use crate::io::{Dataset, crates_graph, karate_club, load_ogb};
use crate::{GraphError, sampling};

/// A published data set for node classification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Known {
    /// Zachary's karate club; inside the library.
    Karate,
    /// 712 crates that this library was built from, with authors, keywords and licences, 39 categories; inside the library.
    Crates,
    /// 2,708 papers, 7 topics.
    Cora,
    /// 3,327 papers, 6 topics.
    Citeseer,
    /// 19,717 papers, 3 topics.
    Pubmed,
    /// 8,285 entities of a research institute, 4 groups.
    Aifb,
    /// 23,644 entities of chemistry, 2 classes.
    Mutag,
    /// 333,845 entities of geology, 2 classes.
    Bgs,
    /// 1,666,764 entities of a museum, 11 classes.
    Am,
    /// 232,965 posts, 114,615,892 edges, 41 communities.
    Reddit,
    /// 169,343 papers, 40 fields.
    OgbnArxiv,
    /// 2,449,029 products, 47 kinds.
    OgbnProducts,
    /// 1,939,743 nodes of 4 types, 349 venues.
    OgbnMag,
}

/// A file of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// What must be in the folder of the set: a path in it.
    pub name: &'static str,
    /// Where the file, or the archive that holds it, is.
    pub url: &'static str,
    /// SHA-256 in hexadecimal digits, where it is known.
    pub sha256: Option<&'static str>,
}

/// Where a set comes from, and under which terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Terms as far as they are stated.
    pub licence: &'static str,
    /// Papers to cite.
    pub citation: &'static str,
    /// Files that make the set.
    pub files: &'static [RemoteFile],
}

const fn file(name: &'static str, url: &'static str) -> RemoteFile {
    RemoteFile { name, url, sha256: None }
}

macro_rules! planetoid {
    ($name:literal) => {{
        const FILES: &[RemoteFile] = &[
            file(concat!("ind.", $name, ".x"), concat!("https://github.com/kimiyoung/planetoid/raw/master/data/ind.", $name, ".x")),
            file(concat!("ind.", $name, ".tx"), concat!("https://github.com/kimiyoung/planetoid/raw/master/data/ind.", $name, ".tx")),
            file(concat!("ind.", $name, ".allx"), concat!("https://github.com/kimiyoung/planetoid/raw/master/data/ind.", $name, ".allx")),
            file(concat!("ind.", $name, ".y"), concat!("https://github.com/kimiyoung/planetoid/raw/master/data/ind.", $name, ".y")),
            file(concat!("ind.", $name, ".ty"), concat!("https://github.com/kimiyoung/planetoid/raw/master/data/ind.", $name, ".ty")),
            file(concat!("ind.", $name, ".ally"), concat!("https://github.com/kimiyoung/planetoid/raw/master/data/ind.", $name, ".ally")),
            file(concat!("ind.", $name, ".graph"), concat!("https://github.com/kimiyoung/planetoid/raw/master/data/ind.", $name, ".graph")),
            file(
                concat!("ind.", $name, ".test.index"),
                concat!("https://github.com/kimiyoung/planetoid/raw/master/data/ind.", $name, ".test.index"),
            ),
        ];
        FILES
    }};
}

macro_rules! entities {
    ($name:literal) => {{
        const FILES: &[RemoteFile] = &[
            file(concat!($name, "_stripped.nt.gz"), concat!("https://data.dgl.ai/dataset/", $name, ".tgz")),
            file("completeDataset.tsv", concat!("https://data.dgl.ai/dataset/", $name, ".tgz")),
            file("trainingSet.tsv", concat!("https://data.dgl.ai/dataset/", $name, ".tgz")),
            file("testSet.tsv", concat!("https://data.dgl.ai/dataset/", $name, ".tgz")),
        ];
        FILES
    }};
}

macro_rules! ogb {
    ($name:literal) => {{
        const FILES: &[RemoteFile] = &[
            file("raw", concat!("http://snap.stanford.edu/ogb/data/nodeproppred/", $name, ".zip")),
            file("split", concat!("http://snap.stanford.edu/ogb/data/nodeproppred/", $name, ".zip")),
        ];
        FILES
    }};
}

const REDDIT: &[RemoteFile] = &[
    file("reddit_data.npz", "https://data.dgl.ai/dataset/reddit.zip"),
    file("reddit_graph.npz", "https://data.dgl.ai/dataset/reddit.zip"),
];

const PLANETOID: &str = "Sen et al., Collective classification in network data, AI Magazine 29(3), 2008; \
     Yang, Cohen, Salakhutdinov, Revisiting semi-supervised learning with graph embeddings, ICML 2016";
const RGCN: &str = "Ristoski, de Vries, Paulheim, A collection of benchmark datasets for systematic evaluations of machine learning on the \
     semantic web, ISWC 2016; Schlichtkrull et al., Modeling relational data with graph convolutional networks, ESWC 2018";
const OGB: &str = "Hu et al., Open Graph Benchmark: datasets for machine learning on graphs, NeurIPS 2020";
const NO_LICENCE: &str = "none stated; for research";

impl Known {
    /// Every set.
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

    /// Name, also of the folder of the set.
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

    /// Where it comes from.
    pub fn about(self) -> About {
        let (licence, citation, files): (_, _, &'static [RemoteFile]) = match self {
            Self::Karate => ("facts of a paper", "Zachary, An information flow model for conflict and fission in small groups, 1977", &[]),
            Self::Crates => ("facts of manifests", "`cargo metadata` of this project (example `crates_graph`)", &[]),
            Self::Cora => (NO_LICENCE, PLANETOID, planetoid!("cora")),
            Self::Citeseer => (NO_LICENCE, PLANETOID, planetoid!("citeseer")),
            Self::Pubmed => (NO_LICENCE, PLANETOID, planetoid!("pubmed")),
            Self::Aifb => (NO_LICENCE, RGCN, entities!("aifb")),
            Self::Mutag => (NO_LICENCE, RGCN, entities!("mutag")),
            Self::Bgs => ("Open Government Licence (British Geological Survey)", RGCN, entities!("bgs")),
            Self::Am => ("CC BY-SA (Amsterdam Museum)", RGCN, entities!("am")),
            Self::Reddit => {
                (NO_LICENCE, "Hamilton, Ying, Leskovec, Inductive representation learning on large graphs, NeurIPS 2017", REDDIT)
            }
            Self::OgbnArxiv => ("ODC-BY", OGB, ogb!("arxiv")),
            Self::OgbnProducts => ("Amazon licence", OGB, ogb!("products")),
            Self::OgbnMag => ("ODC-BY", OGB, ogb!("mag")),
        };
        About { licence, citation, files }
    }

    /// [`load_from`](Self::load_from) the default home.
    ///
    /// # Errors
    /// As [`load_from`](Self::load_from).
    pub fn load(self) -> Result<Dataset, GraphError> {
        self.load_from(&DataHome::new())
    }

    /// Reads the set from its folder in `home`, fetching what is missing if `home` may.
    ///
    /// # Errors
    /// [`GraphError::DataMissing`], which says where to put which file, if something is not there and may not or cannot be fetched;
    /// `GraphError::Download` for a transfer that failed; the errors of the set's reader; [`GraphError::Feature`] for
    /// a set whose format is a cargo feature that is off.
    pub fn load_from(self, home: &DataHome) -> Result<Dataset, GraphError> {
        match self {
            Self::Karate => return Ok(karate_club()),
            Self::Crates => return Ok(crates_graph()),
            _ => {}
        }
        #[cfg(not(feature = "rdf"))]
        if matches!(self, Self::Aifb | Self::Mutag | Self::Bgs | Self::Am) {
            return Err(crate::GraphError::feature(self.name(), "rdf"));
        }
        #[cfg(not(feature = "npz"))]
        if self == Self::Reddit {
            return Err(crate::GraphError::feature(self.name(), "npz"));
        }
        let dir = home.provide(self)?;
        let set = match self {
            Self::Karate | Self::Crates => unreachable!("returned above"),
            Self::Cora | Self::Citeseer | Self::Pubmed => super::planetoid::load(&dir, self.name()),
            #[cfg(feature = "rdf")]
            Self::Aifb | Self::Mutag | Self::Bgs | Self::Am => super::entities::load(&dir, self.name()),
            #[cfg(not(feature = "rdf"))]
            Self::Aifb | Self::Mutag | Self::Bgs | Self::Am => unreachable!("refused above"),
            #[cfg(feature = "npz")]
            Self::Reddit => super::reddit::load(&dir),
            #[cfg(not(feature = "npz"))]
            Self::Reddit => unreachable!("refused above"),
            Self::OgbnArxiv | Self::OgbnProducts | Self::OgbnMag => load_ogb(&dir),
        };
        let mut set = set.map_err(|e| e.in_file(&dir))?;
        set.name = self.name().to_owned();
        Ok(set)
    }
}

impl FromStr for Known {
    type Err = GraphError;

    /// By [`name`](Self::name).
    fn from_str(name: &str) -> Result<Self, GraphError> {
        let found = Self::ALL.into_iter().find(|k| k.name() == name);
        let names: Vec<&str> = Self::ALL.iter().map(|k| k.name()).collect();
        found.ok_or_else(|| sampling::setting("data set", &format!("one of {}", names.join(", ")), name))
    }
}
