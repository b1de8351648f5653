//! Splits lists, texts and file ids of nodes and edges by part.

use std::collections::BTreeMap;

use burn_gnn_graph::{Frame, GlobalIds, Ids, NodeIds, Ragged, Schema, Texts};

use crate::error::DistError;

/// Lists, texts and ids of the nodes or edges of one type, row by row: those that the part owns, then the others, as
/// [`Partition::to_graph`] has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attributes {
    pub(crate) lists: BTreeMap<String, Ragged>,
    pub(crate) texts: BTreeMap<String, Texts>,
    pub(crate) ids: Option<Ids>,
    pub(crate) global_ids: Option<GlobalIds>,
}

/// Of node types and of edge types.
pub(crate) type AttributesByType = [Vec<Attributes>; 2];

pub(crate) const KINDS: [&str; 2] = ["node", "edge"];

impl Attributes {
    /// Those of a frame at `rows`.
    pub(crate) fn of(frame: &Frame, rows: &[u32]) -> Result<Self, DistError> {
        let global_ids = frame.global_ids().map(|ids| {
            let ids = ids.as_slice();
            GlobalIds::new(rows.iter().map(|&r| ids[r as usize]).collect())
        });
        Ok(Self {
            lists: frame.lists().map(|(name, list)| (name.to_owned(), list.select(rows))).collect(),
            texts: frame
                .texts()
                .map(|(name, texts)| {
                    (name.to_owned(), texts.select(rows.iter().map(|&r| r as usize)))
                })
                .collect(),
            ids: frame.ids().map(|ids| ids.ids().select(rows)),
            global_ids: global_ids.transpose()?,
        })
    }
    /// Gives them to a frame of as many rows.
    pub(crate) fn insert(&self, frame: &mut Frame) -> Result<(), DistError> {
        for (name, list) in &self.lists {
            frame.insert_list(name, list.clone())?;
        }
        for (name, texts) in &self.texts {
            frame.insert_text(name, texts.clone())?;
        }
        if let Some(ids) = &self.ids {
            frame.set_ids(NodeIds::new(ids.clone()))?;
        }
        if let Some(ids) = &self.global_ids {
            frame.set_global_ids(ids.clone())?;
        }
        Ok(())
    }
}

/// No lists, texts or ids of any type.
pub(crate) fn no_attributes(schema: &Schema) -> AttributesByType {
    [schema.ntypes().len(), schema.etypes().len()].map(|types| vec![Attributes::default(); types])
}
