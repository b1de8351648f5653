//! Looks up the policies of a graph: one for each node type and edge type.

use burn_gnn_graph::{EdgeKey, NodeKey};

use super::dist_graph::DistGraph;
use super::owners::Owners;
use super::policy::PartitionPolicy;
use crate::error::DistError;

impl DistGraph {
    /// Names of all policies: `node~type`, then `edge~src:relation:dst`.
    pub fn policies(&self) -> Vec<String> {
        let nodes = self.ntypes().iter().map(|t| format!("node~{t}"));
        nodes.chain(self.etypes().iter().map(|t| format!("edge~{t}"))).collect()
    }
    /// Looks up a policy by name.
    ///
    /// # Errors
    /// [`DistError::UnknownPolicy`]: there is no such type. Types cannot be added to an open graph.
    pub fn policy(&self, name: &str) -> Result<PartitionPolicy, DistError> {
        let known = self.policies();
        let at = known.iter().position(|k| k == name);
        let nodes = self.ntypes().len();
        match at {
            Some(i) if i < nodes => Ok(PartitionPolicy { is_node: true, ty: i }),
            Some(i) => Ok(PartitionPolicy { is_node: false, ty: i - nodes }),
            None => Err(DistError::UnknownPolicy { policy: name.to_owned(), known }),
        }
    }
    /// The policy of a node type.
    ///
    /// # Errors
    /// Unknown type.
    pub fn node_policy(&self, ntype: impl NodeKey) -> Result<PartitionPolicy, DistError> {
        Ok(PartitionPolicy { is_node: true, ty: self.schema().ntype(ntype)? })
    }
    /// The policy of an edge type.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn edge_policy(&self, etype: impl EdgeKey) -> Result<PartitionPolicy, DistError> {
        Ok(PartitionPolicy { is_node: false, ty: self.schema().etype(etype)? })
    }
    /// The name of a policy.
    ///
    /// # Panics
    /// The policy belongs to another graph with more types.
    pub fn policy_name(&self, policy: PartitionPolicy) -> String {
        let owners = self.owners(policy);
        format!("{}~{}", owners.what(), owners.names()[policy.ty])
    }
    /// Owners of the structure and the stored columns.
    pub(crate) fn owners(&self, of: PartitionPolicy) -> &Owners {
        if of.is_node { &self.inner.nodes } else { &self.inner.edges }
    }
    /// Owners of mutable rows.
    pub(crate) fn row_owners(&self, of: PartitionPolicy) -> &Owners {
        if of.is_node { &self.inner.node_rows } else { &self.inner.edge_rows }
    }

    pub(crate) fn rows_of(&self, policy: PartitionPolicy) -> u64 {
        self.owners(policy).total(policy.ty)
    }
    /// Ids in the input graph of the mutable rows of this rank.
    pub(crate) fn originals_of(&self, policy: PartitionPolicy) -> &[u64] {
        let of_part = if policy.is_node {
            self.inner.own_originals(policy.ty)
        } else {
            &self.inner.edge_ids[policy.ty][..]
        };
        let begin = self.owners(policy).positions(policy.ty).start;
        let rows = self.row_owners(policy).positions(policy.ty);
        &of_part[(rows.start - begin) as usize..(rows.end - begin) as usize]
    }

    /// Determines the policy of a tensor and the shape of its rows.
    pub(crate) fn choose_policy(
        &self,
        name: &str,
        shape: &[usize],
        policy: Option<PartitionPolicy>,
    ) -> Result<(PartitionPolicy, Vec<usize>), DistError> {
        let Some((&rows, row)) = shape.split_first() else {
            let expected = "a first dimension, which counts nodes or edges".into();
            return Err(DistError::Config { arg: "shape", expected, found: "[]".into() });
        };
        let types =
            |is_node: bool, count: usize| (0..count).map(move |ty| PartitionPolicy { is_node, ty });
        let all = types(true, self.ntypes().len()).chain(types(false, self.etypes().len()));
        if let Some(policy) = policy {
            if policy.ty >= self.owners(policy).names().len() {
                let policy = format!("type number {}", policy.ty);
                return Err(DistError::UnknownPolicy { policy, known: self.policies() });
            }
            let expected = self.rows_of(policy);
            if expected != rows as u64 {
                let expected = format!(
                    "{expected} rows of tensor `{name}`, as `{}` has",
                    self.policy_name(policy)
                );
                return Err(DistError::Config { arg: "shape", expected, found: rows.to_string() });
            }
            return Ok((policy, row.to_vec()));
        }
        let fits: Vec<_> = all.filter(|&p| self.rows_of(p) == rows as u64).collect();
        match fits[..] {
            [policy] => Ok((policy, row.to_vec())),
            _ => {
                let candidates = fits.iter().map(|&p| self.policy_name(p)).collect();
                Err(DistError::Policy { name: name.to_owned(), rows: rows as u64, candidates })
            }
        }
    }
}
