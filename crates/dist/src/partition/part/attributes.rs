//! Lists, texts and ids of the nodes and edges of a part: all attributes that are not tensors.

use std::collections::BTreeMap;

use burn_gnn_graph::{Frame, GlobalIds, Ids, NodeIds, Ragged, Schema, Texts};

use crate::error::DistError;

/// Lists, texts and ids of the nodes or edges of one type. The rows of inner nodes or edges come first, in the order of
/// [`Partition::to_graph`](crate::Partition::to_graph).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attributes {
    pub(crate) lists: BTreeMap<String, Ragged>,
    pub(crate) texts: BTreeMap<String, Texts>,
    pub(crate) ids: Option<Ids>,
    pub(crate) global_ids: Option<GlobalIds>,
}

/// Attributes of all node types and of all edge types.
pub(crate) type AttributesByType = [Vec<Attributes>; 2];

pub(crate) const KINDS: [&str; 2] = ["node", "edge"];

impl Attributes {
    /// Selects `rows` of a frame.
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
    /// Adds the attributes to a frame with the same number of rows.
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
