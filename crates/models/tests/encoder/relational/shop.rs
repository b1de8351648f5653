//! A small database in code: users, products, and orders with a time.

use burn_gnn_data::{
    ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable, DatabaseTask, Part, Targets,
    TaskRows, TaskType,
};
use burn_gnn_graph::Stream;

pub(super) const DAY: i64 = 86_400_000_000;
pub(super) const USERS: usize = 40;
const DAYS: i64 = 120;
pub(super) const VAL: i64 = 80 * DAY;
pub(super) const TEST: i64 = 100 * DAY;

pub(super) fn column(name: &str, kind: ColumnKind, values: ColumnValues) -> DatabaseColumn {
    DatabaseColumn::new(name, kind, values).unwrap()
}

fn ints(name: &str, kind: ColumnKind, values: impl IntoIterator<Item = i64>) -> DatabaseColumn {
    column(name, kind, ColumnValues::Ints(values.into_iter().collect()))
}

/// An order.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) id: i64,
    pub(super) user: i64,
    pub(super) product: i64,
    pub(super) price: f64,
    pub(super) channel: &'static str,
    pub(super) day: i64,
}

/// Orders of 120 days. A user with an odd number buys twice as often from day to day as one with an even number, and
/// at three times the price.
pub(super) fn orders() -> Vec<Order> {
    let draws = Stream::new(5, "shop", 0);
    let mut all = vec![];
    for day in 0..DAYS {
        for user in 0..USERS as i64 {
            let odd = user % 2;
            let of = |column| draws.uniform((day * USERS as i64 + user) as u64, column);
            if of(0) < 0.1 + 0.2 * odd as f64 {
                let price = (1 + 2 * odd) as f64 * (5.0 + of(1));
                let channel = ["web", "shop", "phone"][(of(2) * 3.0) as usize];
                let (id, product) = (all.len() as i64, (of(3) * 7.0) as i64);
                all.push(Order { id, user, product, price, channel, day });
            }
        }
    }
    all
}

/// The database of some orders, in any order; `users` lists the users by row.
pub(super) fn database(users: &[i64], orders: &[Order]) -> Database {
    let key = ColumnKind::Key;
    let city = |user: &i64| ["Bonn", "Köln"][(user / 2 % 2) as usize];
    let users_table = DatabaseTable::new(
        "users",
        [
            ints("id", key, users.iter().copied()),
            column(
                "city",
                ColumnKind::Category,
                ColumnValues::Texts(users.iter().map(city).collect()),
            ),
        ],
    );
    let products = DatabaseTable::new(
        "products",
        [ints("id", key, 0..7), ints("weight", ColumnKind::Number, (0..7).map(|p| p * p))],
    );
    let of = |f: fn(&Order) -> i64| orders.iter().map(f);
    let orders_table = DatabaseTable::new(
        "orders",
        [
            ints("id", key, of(|o| o.id)),
            ints("user", key, of(|o| o.user)),
            ints("product", key, of(|o| o.product)),
            column(
                "price",
                ColumnKind::Number,
                ColumnValues::Floats(orders.iter().map(|o| o.price).collect()),
            ),
            column(
                "channel",
                ColumnKind::Category,
                ColumnValues::Texts(orders.iter().map(|o| o.channel).collect()),
            ),
            column("date", ColumnKind::Time, ColumnValues::Times(of(|o| o.day * DAY).collect())),
        ],
    );
    let keyed = |table: Result<DatabaseTable, _>| table.unwrap().with_primary_key(["id"]).unwrap();
    let orders_table = keyed(orders_table)
        .with_foreign_key(["user"], "users")
        .unwrap()
        .with_foreign_key(["product"], "products")
        .unwrap()
        .with_time_column("date")
        .unwrap();
    Database::new("shop", [keyed(users_table), keyed(products), orders_table])
        .unwrap()
        .with_timestamps(VAL, TEST)
}

/// Number and mean price of the orders of each user in the ten days after a day.
fn window(all: &[Order], user: i64, day: i64) -> (usize, f64) {
    let of_user = all.iter().filter(|o| o.user == user && o.day > day && o.day <= day + 10);
    let (n, sum) = of_user.fold((0, 0.0), |(n, sum), o| (n + 1, sum + o.price));
    (n, sum / (n as f64).max(1.0))
}

/// A task on the users with a label per user and day.
pub(super) fn task(
    name: &str,
    task_type: TaskType,
    users: &[i64],
    label: impl Fn(i64, i64) -> f64,
) -> DatabaseTask {
    let mut task = DatabaseTask::new(name, task_type, "users", "user", "label");
    let days = [(Part::Train, 20..=70), (Part::Val, 80..=80), (Part::Test, 100..=100)];
    for (part, days) in days {
        let (mut times, mut entities, mut labels) = (vec![], vec![], vec![]);
        for day in days.step_by(10) {
            for (row, &user) in users.iter().enumerate() {
                times.push(day * DAY);
                entities.push(row as u32);
                labels.push(label(user, day));
            }
        }
        let targets = match task_type {
            TaskType::Regression => Targets::Values(labels),
            TaskType::MultilabelClassification => Targets::Labels {
                columns: 2,
                values: labels.iter().flat_map(|&y| [y as f32, 1.0 - y as f32]).collect(),
            },
            _ => Targets::Classes(labels.iter().map(|&y| y as i64).collect()),
        };
        *task.rows_mut(part) = TaskRows { times, entities, targets, dropped: 0 };
    }
    task
}

/// The database with tasks: `busy` (at least two orders in the next ten days), `spending` (the mean price there), `rate`
/// (none, one, or more orders), `both` (two labels).
pub(super) fn shop() -> Database {
    let (users, all) = ((0..USERS as i64).collect::<Vec<_>>(), orders());
    with_tasks(database(&users, &all), &users)
}

pub(super) fn with_tasks(db: Database, users: &[i64]) -> Database {
    let all = orders();
    let count = |user, day| window(&all, user, day).0;
    let is_busy = |user, day| f64::from(u8::from(count(user, day) > 1));
    let tasks = [
        task("busy", TaskType::BinaryClassification, users, is_busy),
        task("spending", TaskType::Regression, users, |user, day| window(&all, user, day).1),
        task("rate", TaskType::MulticlassClassification, users, |user, day| {
            count(user, day).min(2) as f64
        }),
        task("both", TaskType::MultilabelClassification, users, is_busy),
    ];
    tasks.into_iter().fold(db, |db, task| db.with_task(task).unwrap())
}
