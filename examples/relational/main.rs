//! Trains a model on tables with keys and times, and verifies that no prediction reads a future row.
//!
//! Each row sees the rows that its keys lead to, up to the time of the seed (Robinson et al., RelBench, NeurIPS 2024).
//!
//! ```sh
//! cargo run --release --example relational -- ../shared/data/rel_f1 driver-dnf
//! ```
//!
//! Without arguments, it makes a shop of two tables in code, and predicts whether a user will buy in the next ten days.

use std::error::Error;

use burn_gnn::data::{
    ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable, DatabaseTask, Part, Targets,
    TaskRows, TaskType,
};
use burn_gnn::models::{
    RelationalOptions, TaskScore, VerifyOptions, train_database, verify_no_future,
};

const DAY: i64 = 86_400_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let db = args.next().map_or_else(shop, |folder| Ok(Database::open(folder)?))?;
    let task = args.next().unwrap_or_else(|| "buys".into());
    let options = RelationalOptions { epochs: 10, ..RelationalOptions::default() };
    let trained = train_database(&db, &task, &options)?;
    for epoch in &trained.history {
        println!("epoch {:>2}  {epoch}", epoch.epoch);
    }
    let figure = |x: &Option<TaskScore>| x.as_ref().map_or("none".into(), |x| x.to_string());
    let (val, test) = (figure(&trained.spec.val), figure(&trained.spec.test));
    println!("{task}, database {}: validation {val}, test {test}", options.protocol);
    println!("{}", verify_no_future(&db, &task, &VerifyOptions::default())?);
    Ok(())
}

/// Users of whom some buy every day or two and others once a month, for 200 days.
fn shop() -> Result<Database, Box<dyn Error>> {
    let key = |name, ids| DatabaseColumn::new(name, ColumnKind::Key, ColumnValues::Ints(ids));
    let period = |user: i64| if user % 3 == 0 { 2 } else { 30 + user % 7 };
    let buys = |user: i64, day: i64| (day + user) % period(user) == 0;
    let pairs = || (0..200).flat_map(|day| (0..60).map(move |user| (user, day)));
    let (users, days): (Vec<i64>, Vec<i64>) =
        pairs().filter(|&(user, day)| buys(user, day)).unzip();
    let times = ColumnValues::Times(days.iter().map(|day| day * DAY).collect());
    let date = DatabaseColumn::new("date", ColumnKind::Time, times)?;
    let orders = DatabaseTable::new("orders", [key("user", users)?, date])?
        .with_foreign_key(["user"], "users")?
        .with_time_column("date")?;
    let users =
        DatabaseTable::new("users", [key("id", (0..60).collect())?])?.with_primary_key(["id"])?;
    let mut task =
        DatabaseTask::new("buys", TaskType::BinaryClassification, "users", "user", "buys");
    for (part, days) in [(Part::Train, 50..130), (Part::Val, 140..150), (Part::Test, 170..180)] {
        let rows = days.step_by(10).flat_map(|day| (0..60).map(move |user| (user, day)));
        let label = |(user, day)| i64::from((day + 1..day + 11).any(|day| buys(user, day)));
        *task.rows_mut(part) = TaskRows {
            times: rows.clone().map(|row| row.1 * DAY).collect(),
            entities: rows.clone().map(|row| row.0 as u32).collect(),
            targets: Targets::Classes(rows.map(label).collect()),
            dropped: 0,
        };
    }
    let db = Database::new("shop", [users, orders])?.with_timestamps(140 * DAY, 170 * DAY);
    Ok(db.with_task(task)?)
}
