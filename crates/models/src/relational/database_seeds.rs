//! Holds the seeds of a part of a task: entities, times, what they see, and targets.

use burn_gnn_data::{Database, DatabaseTask, NEVER, Part, Protocol, Targets};

use crate::error::ModelError;

/// Whether a row of a table with row times `times` is visible at `seen`. A row of a table without times (`None`) always
/// is, a row whose time is missing never.
pub(crate) fn is_visible(times: Option<&[i64]>, row: u32, seen: i64) -> bool {
    times.is_none_or(|times| {
        let time = times[row as usize];
        time <= seen && time != NEVER
    })
}

/// The seeds of a [`DatabaseSampler`](crate::DatabaseSampler): rows of the entity table, each at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseSeeds {
    /// Rows of the entity table.
    pub entities: Vec<u32>,
    /// Time of each seed, in microseconds since 1970.
    pub times: Vec<i64>,
    /// Latest time of a row that each seed sees: at most its time.
    pub visible: Vec<i64>,
    /// Targets, one per seed; none where something is predicted.
    pub targets: Option<Targets>,
}

impl DatabaseSeeds {
    /// The rows of a part of a task, which see what `protocol` lets them see.
    pub fn of_task(db: &Database, task: &DatabaseTask, part: Part, protocol: Protocol) -> Self {
        let rows = task.rows(part);
        let visible = rows.times.iter().map(|&time| protocol.visible_until(part, time, db));
        Self {
            entities: rows.entities.clone(),
            times: rows.times.clone(),
            visible: visible.collect(),
            targets: Some(rows.targets.clone()),
        }
    }

    /// Entities at one time, of which all rows up to this time are seen, without targets.
    pub fn at(entities: &[u32], time: i64) -> Self {
        let times = vec![time; entities.len()];
        Self { entities: entities.to_vec(), visible: times.clone(), times, targets: None }
    }

    /// Number of seeds.
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Whether there are no seeds.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// The seeds at some positions.
    ///
    /// # Panics
    /// A position that is not below [`len`](Self::len).
    #[must_use]
    #[track_caller]
    pub fn select(&self, positions: &[u32]) -> Self {
        fn pick<T: Copy>(values: &[T], positions: &[u32]) -> Vec<T> {
            positions.iter().map(|&i| values[i as usize]).collect()
        }
        let targets = self.targets.as_ref().map(|targets| match targets {
            Targets::Classes(v) => Targets::Classes(pick(v, positions)),
            Targets::Values(v) => Targets::Values(pick(v, positions)),
            Targets::Labels { columns, values } => {
                let row = |&i: &u32| &values[i as usize * columns..(i as usize + 1) * columns];
                let values = positions.iter().flat_map(row).copied().collect();
                Targets::Labels { columns: *columns, values }
            }
            Targets::Lists(v) => {
                Targets::Lists(positions.iter().map(|&i| v[i as usize].clone()).collect())
            }
        });
        Self {
            entities: pick(&self.entities, positions),
            times: pick(&self.times, positions),
            visible: pick(&self.visible, positions),
            targets,
        }
    }

    /// The seeds whose label is known by `end`: its window, which starts at the time of the seed, has ended.
    #[must_use]
    pub fn ended_by(&self, end: i64, window: Option<i64>) -> Self {
        let is_known = |time: i64| time.saturating_add(window.unwrap_or(0)) <= end;
        let known = self.times.iter().zip(0u32..).filter(|(time, _)| is_known(**time));
        self.select(&known.map(|(_, i)| i).collect::<Vec<_>>())
    }

    /// These seeds, and after them those of `others`; without targets if these are of another type.
    #[must_use]
    pub fn followed_by(mut self, others: Self) -> Self {
        self.entities.extend(others.entities);
        self.times.extend(others.times);
        self.visible.extend(others.visible);
        match (&mut self.targets, others.targets) {
            (Some(Targets::Classes(own)), Some(Targets::Classes(more))) => own.extend(more),
            (Some(Targets::Values(own)), Some(Targets::Values(more))) => own.extend(more),
            (
                Some(Targets::Labels { values: own, .. }),
                Some(Targets::Labels { values: more, .. }),
            ) => own.extend(more),
            (Some(Targets::Lists(own)), Some(Targets::Lists(more))) => own.extend(more),
            (own, _) => *own = None,
        }
        self
    }

    /// Number of labels that are known.
    pub(crate) fn num_labels(&self) -> usize {
        match &self.targets {
            None => 0,
            Some(Targets::Classes(v)) => v.iter().filter(|class| **class >= 0).count(),
            Some(Targets::Values(v)) => v.iter().filter(|x| x.is_finite()).count(),
            Some(Targets::Labels { values, .. }) => values.iter().filter(|x| !x.is_nan()).count(),
            Some(Targets::Lists(v)) => v.iter().filter(|list| !list.is_empty()).count(),
        }
    }

    /// The seeds, with all labels missing.
    pub(crate) fn without_labels(mut self) -> Self {
        match &mut self.targets {
            None => {}
            Some(Targets::Classes(v)) => v.fill(-1),
            Some(Targets::Values(v)) => v.fill(f64::NAN),
            Some(Targets::Labels { values, .. }) => values.fill(f32::NAN),
            Some(Targets::Lists(v)) => v.iter_mut().for_each(Vec::clear),
        }
        self
    }

    /// Checks lengths and entities of a table of `rows` rows.
    pub(crate) fn check(&self, rows: usize) -> Result<(), ModelError> {
        let n = self.entities.len();
        ModelError::check_length("times", "one per entity", n, self.times.len())?;
        ModelError::check_length("visible", "one per entity", n, self.visible.len())?;
        if let Some(targets) = &self.targets {
            ModelError::check_length("targets", "one per entity", n, targets.len())?;
        }
        let wrong = self.entities.iter().find(|&&row| row as usize >= rows);
        let range = format!("0..{rows}, the rows of the entity table");
        let value = wrong.copied().unwrap_or_default();
        ModelError::check_range("entity", &range, value, wrong.is_none())?;
        let later = self.times.iter().zip(&self.visible).position(|(time, seen)| seen > time);
        let value = later.map_or(0, |i| self.visible[i]);
        ModelError::check_range("visible", "times up to that of the seed", value, later.is_none())
    }
}
