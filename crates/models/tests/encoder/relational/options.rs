//! Options of training: other tasks, label history, class weights.

use burn_gnn_data::{
    ColumnKind, ColumnValues, Database, DatabaseTable, DatabaseTask, Part, Protocol, Targets,
    TaskType,
};
use burn_gnn_models::*;

use super::shop::{DAY, TEST, USERS, VAL, column, database, orders, shop, task, with_tasks};
use super::training::{numbers, options};

/// The database with a changed task.
fn with_changed(db: &Database, name: &str, change: impl Fn(&mut DatabaseTask)) -> Database {
    let mut task = db.task(name).unwrap().clone();
    change(&mut task);
    db.clone().with_task(task).unwrap()
}

#[test]
fn other_tasks_train_the_encoders() {
    let db = shop();
    let alone = RelationalOptions { epochs: 2, ..options(RelationalKind::Sage) };
    let base = RelationalOptions { other_tasks: vec!["spending".into()], ..alone.clone() };
    let train = |db: &Database| train_database(db, "busy", &base).unwrap();
    let joint = train(&db);
    assert_eq!(joint.spec.other_targets.len(), 1);
    assert!(joint.spec.val.as_ref().unwrap().value > 0.75, "{:?}", joint.spec.val);
    let encoders = |of: &TrainedDatabase| numbers(&of.model.encoders);
    assert_ne!(encoders(&joint), encoders(&train_database(&db, "busy", &alone).unwrap()));
    // Labels are read if their window has ended at the validation time, day 80: up to day 70 or 60.
    let doubled = |window: i64, from: i64| {
        with_changed(&db, "spending", |task| {
            task.timedelta = Some(window * DAY);
            let Targets::Values(values) = &mut task.train.targets else { panic!() };
            let times = task.train.times.iter();
            times.zip(values).filter(|(t, _)| **t >= from * DAY).for_each(|(_, y)| *y *= 2.0);
        })
    };
    assert_ne!(encoders(&train(&doubled(10, 70))), encoders(&train(&doubled(10, 80))));
    assert_eq!(encoders(&train(&doubled(20, 70))), encoders(&train(&doubled(20, 80))));
    assert_ne!(encoders(&train(&doubled(20, 60))), encoders(&train(&doubled(20, 70))));
    // None has ended.
    let text = train_database(&doubled(100, 80), "busy", &base).unwrap_err().to_string();
    assert!(text.contains("`other_tasks`") && text.contains("`spending`"), "{text}");
    let of_products = with_changed(&db, "spending", |task| {
        task.entity_table = "products".into();
        *task.rows_mut(Part::Train) = task.rows(Part::Train).select(&[0, 1]);
        *task.rows_mut(Part::Val) = task.rows(Part::Val).select(&[]);
        *task.rows_mut(Part::Test) = task.rows(Part::Test).select(&[]);
    });
    let text = train_database(&of_products, "busy", &base).unwrap_err().to_string();
    assert!(text.contains("`other_tasks`") && text.contains("`products`"), "{text}");
}

/// Users without a column, each of whom has the same label at all times.
fn coins() -> Database {
    let users: Vec<i64> = (0..USERS as i64).collect();
    let ids = column("id", ColumnKind::Key, ColumnValues::Ints(users.clone()));
    let table = DatabaseTable::new("users", [ids]).unwrap().with_primary_key(["id"]).unwrap();
    let coin = |user: i64, _| (user * 7 % 5 % 2) as f64;
    let mut task = task("coin", TaskType::BinaryClassification, &users, coin);
    task.timedelta = Some(10 * DAY);
    let db = Database::new("coins", [table]).unwrap().with_timestamps(VAL, TEST);
    db.with_task(task).unwrap()
}

#[test]
fn label_history_is_read_once_its_window_has_ended() {
    let db = coins();
    let all: Vec<u32> = (0..USERS as u32).collect();
    for kind in [RelationalKind::Sage, RelationalKind::RowSets] {
        let alone = options(kind);
        let score = train_database(&db, "coin", &alone).unwrap().spec.val.unwrap();
        assert!(score.value < 0.6, "all users are equal: {score}");
        let base = RelationalOptions { label_history: true, ..alone };
        let trained = train_database(&db, "coin", &base).unwrap();
        let score = trained.spec.val.clone().unwrap();
        assert!(score.value > 0.99, "{kind:?}: {score}");
        // Labels of day 80 are known from day 90 on.
        let other = with_changed(&db, "coin", |task| {
            let Targets::Classes(classes) = &mut task.val.targets else { panic!() };
            classes.iter_mut().for_each(|y| *y = 1 - *y);
        });
        let at = |db: &Database, time: i64| trained.predict(db, &all, time).unwrap();
        assert_eq!(at(&db, 90 * DAY - 1), at(&other, 90 * DAY - 1), "{kind:?}");
        assert_ne!(at(&db, 90 * DAY), at(&other, 90 * DAY), "{kind:?}");
        // Training and validation do not read them either.
        let again = train_database(&other, "coin", &base).unwrap();
        assert_eq!(again.spec.encoders, trained.spec.encoders);
        assert_eq!(again.history[0].loss, trained.history[0].loss);
    }
    let without = with_changed(&db, "coin", |task| task.timedelta = None);
    let base = RelationalOptions { label_history: true, ..options(RelationalKind::Sage) };
    let text = train_database(&without, "coin", &base).unwrap_err().to_string();
    assert!(text.contains("`label_history`") && text.contains("timedelta"), "{text}");
}

#[test]
fn balanced_classes_have_weights() {
    let db = shop();
    for task in ["busy", "rate"] {
        let train = |balanced| {
            let base = RelationalOptions { epochs: 1, balanced, ..options(RelationalKind::Sage) };
            numbers(&train_database(&db, task, &base).unwrap().model)
        };
        assert!(train(false) != train(true), "{task}: the weights of the classes change nothing");
    }
}

/// The second training reads validation labels, the measured validation does not change.
#[test]
fn a_refit_reads_validation_labels_that_are_known_at_the_test_time() {
    let db = shop();
    let options = options(RelationalKind::RowSets);
    let base = RelationalOptions { epochs: 2, weight_averaging: 0.5, ..options };
    let refit = RelationalOptions { refit: true, ..base.clone() };
    let train =
        |db: &Database, options: &RelationalOptions| train_database(db, "busy", options).unwrap();
    let (once, twice) = (train(&db, &base), train(&db, &refit));
    assert_eq!(once.spec.val, twice.spec.val);
    assert_eq!(twice.history[..once.history.len()], once.history);
    assert!(twice.history.len() > once.history.len());
    assert_ne!(numbers(&once.model), numbers(&twice.model));
    let (days, end) = (&db.task("busy").unwrap().val.times, TEST);
    let last = days.iter().max().unwrap();
    let flipped = |window: i64| {
        with_changed(&db, "busy", |task| {
            task.timedelta = Some(window);
            let Targets::Classes(classes) = &mut task.val.targets else { panic!() };
            let rows = task.val.times.iter().zip(classes);
            rows.filter(|(time, _)| *time == last).for_each(|(_, y)| *y = 1 - *y);
        })
    };
    let of_window = |window: i64| with_changed(&db, "busy", |task| task.timedelta = Some(window));
    let model = |db: &Database| numbers(&train(db, &refit).model);
    // Windows of the last validation seeds end at the test time, or a moment later.
    let window = end - last;
    assert_ne!(model(&flipped(window)), model(&of_window(window)));
    assert_eq!(model(&flipped(window + 1)), model(&of_window(window + 1)));
    // Without test rows nothing is measured.
    let untested = RelationalOptions { test: false, ..refit.clone() };
    assert_eq!(train(&db, &untested).spec.test, None);
}

/// Under both protocols, rows and labels from the test time on change neither model nor statistics.
#[test]
fn a_refit_reads_nothing_from_the_test_time_on() {
    let users: Vec<i64> = (0..USERS as i64).collect();
    let changed = |from: i64| {
        let mut all = orders();
        for order in all.iter_mut().filter(|order| order.day >= from) {
            (order.price, order.channel) = (order.price * 3.0 + 1.0, "fax");
            order.product = 6 - order.product;
        }
        let db = with_tasks(database(&users, &all), &users);
        with_changed(&db, "busy", |task| {
            task.timedelta = Some(10 * DAY);
            let Targets::Classes(classes) = &mut task.test.targets else { panic!() };
            classes.iter_mut().filter(|_| from * DAY <= TEST).for_each(|y| *y = 1 - *y);
        })
    };
    for protocol in [Protocol::Frozen, Protocol::SeedTime] {
        let options = RelationalOptions {
            protocol,
            epochs: 2,
            weight_averaging: 0.5,
            half_life: Some(20 * DAY),
            refit: true,
            test: false,
            ..options(RelationalKind::RowSets)
        };
        let train = |from: i64| {
            let trained = train_database(&changed(from), "busy", &options).unwrap();
            assert!(trained.spec.refit);
            (numbers(&trained.model), trained.spec.encoders, trained.spec.val)
        };
        let never = train(1000);
        assert_eq!(never, train(TEST / DAY), "{protocol}");
        let earlier = train(TEST / DAY - 1);
        assert!(never.0 != earlier.0 && never.1 != earlier.1, "{protocol}");
        assert_eq!(never.2, earlier.2, "{protocol}");
    }
}

/// A run that is interrupted in either training goes on with the same bits.
#[test]
fn averaging_recency_and_refit_resume() {
    let db = shop();
    let dir = tempfile::tempdir().unwrap();
    let run = |epochs: usize, file: &str| {
        let options = RelationalOptions {
            epochs,
            weight_averaging: 0.5,
            half_life: Some(20 * DAY),
            refit: true,
            checkpoint: Some(dir.path().join(file)),
            ..options(RelationalKind::RowSets)
        };
        train_database(&db, "busy", &options).unwrap()
    };
    let whole = run(4, "whole");
    std::fs::remove_file(dir.path().join("whole.refit")).unwrap();
    let again = run(4, "whole");
    assert_eq!(numbers(&again.model), numbers(&whole.model));
    assert_eq!((again.history, again.spec.val), (whole.history, whole.spec.val));
}

/// A search that is interrupted goes on with its candidates, and with the refit of the best one.
#[test]
fn a_search_resumes() {
    let db = shop();
    let dir = tempfile::tempdir().unwrap();
    let run = |file: &str| {
        let options = RelationalOptions {
            epochs: 4,
            refit: true,
            checkpoint: Some(dir.path().join(file)),
            ..options(RelationalKind::RowSets)
        };
        let other = RelationalOptions { lr: 1e-9, ..options.clone() };
        train_best(&db, "busy", vec![other, options]).unwrap()
    };
    let (whole, _) = run("whole");
    let files = ["whole.0", "whole.1", "whole.refit"].map(|file| dir.path().join(file));
    assert!(files.iter().all(|file| file.exists()) && !dir.path().join("whole").exists());
    std::fs::remove_file(&files[2]).unwrap();
    let (again, measured) = run("whole");
    assert_eq!(numbers(&again.model), numbers(&whole.model));
    assert_eq!((&again.history, &measured[0].val), (&whole.history, &whole.spec.val));
}

/// The best of two settings on the validation seeds is first, whatever their order.
#[test]
fn a_search_orders_options_by_validation() {
    let db = shop();
    let good = options(RelationalKind::WindowMeans);
    let bad = RelationalOptions { lr: 1e-9, ..options(RelationalKind::RowSets) };
    for candidates in [vec![good.clone(), bad.clone()], vec![bad.clone(), good.clone()]] {
        let found = search_options(&db, "busy", candidates).unwrap();
        assert_eq!(found[0].options.lr, good.lr);
        let val = |i: usize| found[i].val.clone().unwrap().value;
        assert!(val(0) > val(1));
        // The chosen model is the measured one.
        let trained = train_database(&db, "busy", &found[0].options).unwrap();
        assert_eq!(trained.spec.val, found[0].val);
    }
    // Errors are better if they are smaller.
    let found = search_options(&db, "spending", vec![bad, good.clone()]).unwrap();
    assert_eq!(found[0].options.lr, good.lr);
    let one = search_options(&db, "busy", vec![good.clone()]).unwrap();
    assert_eq!((one.len(), one[0].val.clone()), (1, None));
    // Without labelled validation seeds nothing is trained, so that wrong options are not found.
    let wrong = RelationalOptions { lr: -1.0, ..options(RelationalKind::RowSets) };
    let both = vec![wrong, good];
    assert!(search_options(&db, "busy", both.clone()).is_err());
    let unlabelled = with_changed(&db, "busy", |task| {
        let Targets::Classes(classes) = &mut task.val.targets else { panic!() };
        classes.fill(-1);
    });
    let found = search_options(&unlabelled, "busy", both).unwrap();
    assert_eq!((found[0].options.lr, found[0].val.clone()), (-1.0, None));
    assert!(search_options(&db, "busy", vec![]).is_err());
}

/// Options follow from size and times of the task.
#[test]
fn options_of_a_task_follow_a_rule() {
    let db = shop();
    let of = |protocol| RelationalOptions::for_task(&db, "busy", protocol).unwrap();
    let (frozen, seed_time) = (of(Protocol::Frozen), of(Protocol::SeedTime));
    // 240 training seeds are one batch.
    assert_eq!((frozen.epochs, frozen.refit), (72, true));
    assert_eq!((frozen.model.far_rows, seed_time.model.far_rows), (1, 8));
    // Training seeds of the shop span less than twice the 40 days.
    assert_eq!(frozen.half_life, None);
    let days = |task: &mut DatabaseTask| task.train.times[0] = -1000 * DAY;
    let long = with_changed(&db, "busy", days);
    let half_life = RelationalOptions::for_task(&long, "busy", Protocol::Frozen).unwrap().half_life;
    assert_eq!(half_life, Some(2 * (TEST - VAL)));
    let all = |protocol| RelationalOptions::candidates(&long, "busy", protocol).unwrap();
    assert_eq!((all(Protocol::Frozen).len(), all(Protocol::SeedTime).len()), (2, 1));
    assert_eq!(all(Protocol::Frozen)[1].half_life, Some(TEST - VAL));
}
