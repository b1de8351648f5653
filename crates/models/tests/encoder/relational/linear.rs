//! The linear model of window means, and its penalty.

use burn_gnn_data::{
    ColumnKind, ColumnValues, Database, DatabaseTable, DatabaseTask, Part, Protocol, Targets,
    TaskRows, TaskType,
};
use burn_gnn_graph::Stream;
use burn_gnn_models::*;

use super::shop::{DAY, TEST, VAL, column, shop};
use super::training::{numbers, options};

const PEOPLE: usize = 50;
const NOISES: usize = 12;

/// People with a reading per five days. One column tells, with noise, what a person is labelled by; the others do not.
/// `shift` is added to the readings at and after a day.
fn readings((day, shift): (i64, f64)) -> Database {
    let draws = Stream::new(11, "readings", 0);
    let (mut people, mut days, mut columns) = (vec![], vec![], vec![Vec::<f64>::new(); NOISES + 1]);
    for (row, (at, person)) in
        (0..24).flat_map(|i| (0..PEOPLE).map(move |p| (i * 5, p))).enumerate()
    {
        let draw = |column: usize| draws.uniform(row as u64, column as u64) - 0.5;
        people.push(person as i64);
        days.push(at * DAY);
        let change = if at >= day { shift } else { 0.0 };
        for (column, values) in columns.iter_mut().enumerate() {
            let told = if column == 0 { 0.6 * (person % 2) as f64 } else { 0.0 };
            values.push(2.0 * draw(column) + told + change);
        }
    }
    let key = ColumnKind::Key;
    let count = days.len() as i64;
    let ints = |name, values| column(name, key, ColumnValues::Ints(values));
    let mut all = vec![
        ints("id", (0..count).collect()),
        ints("person", people),
        column("date", ColumnKind::Time, ColumnValues::Times(days)),
    ];
    for (i, values) in columns.into_iter().enumerate() {
        let values = ColumnValues::Floats(values);
        all.push(column(&format!("x{i}"), ColumnKind::Number, values));
    }
    let table = |name, columns| DatabaseTable::new(name, columns).unwrap();
    let persons = table("people", vec![ints("id", (0..PEOPLE as i64).collect())]);
    let readings = table("readings", all).with_primary_key(["id"]).unwrap();
    let readings = readings.with_foreign_key(["person"], "people").unwrap();
    let readings = readings.with_time_column("date").unwrap();
    let persons = persons.with_primary_key(["id"]).unwrap();
    let db = Database::new("readings", [persons, readings]).unwrap().with_timestamps(VAL, TEST);
    let mut task =
        DatabaseTask::new("odd", TaskType::BinaryClassification, "people", "person", "label");
    task.timedelta = Some(10 * DAY);
    let days = [(Part::Train, 20..=70), (Part::Val, 80..=90), (Part::Test, 100..=110)];
    for (part, days) in days {
        let seeds = days.step_by(10).flat_map(|day| (0..PEOPLE).map(move |p| (day, p)));
        let (mut times, mut entities, mut labels) = (vec![], vec![], vec![]);
        for (i, (day, person)) in seeds.enumerate() {
            times.push(day * DAY);
            entities.push(person as u32);
            // One label in five is wrong.
            let draw = draws.uniform(1_000_000 + 1000 * day as u64 + i as u64, 0);
            labels.push((person as i64 + i64::from(draw < 0.2)) % 2);
        }
        *task.rows_mut(part) =
            TaskRows { times, entities, targets: Targets::Classes(labels), dropped: 0 };
    }
    db.with_task(task).unwrap()
}

fn linear() -> RelationalOptions {
    RelationalOptions { epochs: 2, ..options(RelationalKind::WindowMeans) }
}

/// Many columns say nothing: without a penalty their weights are learned by heart, and backtests find that out.
#[test]
fn backtests_choose_a_penalty_under_which_noise_does_not_count() {
    let db = readings((1000, 0.0));
    let train = |weight_decay| {
        let options = RelationalOptions { weight_decay, refit: true, ..linear() };
        train_database(&db, "odd", &options).unwrap()
    };
    let (chosen, weak) = (train(0.0), train(1e-4));
    let first = train_database(&db, "odd", &linear()).unwrap();
    // The refit takes the penalty of the first training.
    assert_eq!((chosen.spec.penalty, weak.spec.penalty), (first.spec.penalty, Some(1e-4)));
    assert!((0.03..=30.0).contains(&chosen.spec.penalty.unwrap()));
    assert_eq!((chosen.history.len(), first.history.len()), (2, 1));
    let score = |of: &TrainedDatabase| of.spec.test.clone().unwrap().value;
    assert!(score(&chosen) > score(&weak) + 0.05, "{} {}", score(&chosen), score(&weak));
    assert!(score(&chosen) > 0.7, "{}", score(&chosen));
}

/// The choice of the penalty reads labels of training and validation only, and rows before the test time.
#[test]
fn nothing_from_the_test_time_on_changes_a_linear_model() {
    for protocol in [Protocol::Frozen, Protocol::SeedTime] {
        let options = RelationalOptions {
            protocol,
            refit: true,
            test: false,
            half_life: Some(30 * DAY),
            ..linear()
        };
        let train = |db: &Database| {
            let trained = train_database(db, "odd", &options).unwrap();
            (numbers(&trained.model), trained.history, trained.spec.val)
        };
        let base = train(&readings((1000, 0.0)));
        let mut task = readings((1000, 0.0)).task("odd").unwrap().clone();
        let Targets::Classes(classes) = &mut task.test.targets else { panic!() };
        classes.iter_mut().for_each(|y| *y = 1 - *y);
        let later = readings((100, 5.0)).with_task(task).unwrap();
        assert!(base == train(&later), "{protocol}");
        assert!(base.0 != train(&readings((95, 5.0))).0, "{protocol}");
    }
}

/// The same bits for any number of workers, and in predictions one by one or together.
#[test]
fn a_linear_model_repeats_bit_for_bit() {
    let db = readings((1000, 0.0));
    let train = |workers, seed| {
        let options = RelationalOptions { workers, seed, ..linear() };
        train_database(&db, "odd", &options).unwrap()
    };
    let (one, other) = (train(1, 0), train(3, 0));
    assert!(numbers(&one.model) == numbers(&other.model));
    assert_eq!((&one.history, &one.spec.test), (&other.history, &other.spec.test));
    assert!(numbers(&one.model) != numbers(&train(1, 1).model), "another seed draws other gaps");
    let together = one.predict(&db, &[3, 7], TEST).unwrap();
    let each = [3, 7].map(|row| one.predict(&db, &[row], TEST).unwrap()[0]);
    assert_eq!(together, each);
}

/// The best candidate goes on where the search has left it.
#[test]
fn the_best_candidate_is_trained_once() {
    let db = shop();
    let good = RelationalOptions { refit: true, ..options(RelationalKind::WindowMeans) };
    let bad = RelationalOptions { lr: 1e-9, epochs: 1, ..options(RelationalKind::RowSets) };
    for candidates in [vec![bad.clone(), good.clone()], vec![good.clone(), bad.clone()]] {
        let (trained, measured) = train_best(&db, "busy", candidates).unwrap();
        let again = train_database(&db, "busy", &good).unwrap();
        assert!(numbers(&trained.model) == numbers(&again.model));
        assert_eq!((&trained.spec.val, &trained.spec.test), (&again.spec.val, &again.spec.test));
        assert_eq!((measured.len(), &measured[0].val), (2, &trained.spec.val));
        assert_eq!(trained.history, again.history);
    }
    let (alone, measured) = train_best(&db, "busy", vec![good]).unwrap();
    assert!(alone.spec.refit && measured[0].val.is_none());
    assert!(train_best(&db, "busy", vec![]).is_err());
}
