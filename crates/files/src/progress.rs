//! Draws progress bars on a terminal.

use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// A bar with counts, rate and time left, on the standard error stream; nothing where that is no terminal. Removed when
/// dropped.
#[derive(Debug)]
pub struct Progress(ProgressBar);

/// How often a bar without steps is drawn.
const TICK: Duration = Duration::from_millis(250);

/// The style of a template of this library, where `{rate}` is steps per second: whole numbers from 10 on.
pub fn progress_style(template: &str) -> ProgressStyle {
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // The bar is drawn again: a rate that cannot be written is no harm.
        let _ = out.write_str(&rate(state.per_sec()));
    })
}

fn rate(per_sec: f64) -> String {
    if per_sec < 10.0 {
        format!("{per_sec:.1}/s")
    } else {
        format!("{}/s", HumanCount(per_sec as u64))
    }
}

impl Progress {
    /// Draws nothing.
    pub fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }
    /// `len` steps, called `units`, of what `what` says; nothing unless `draw`.
    pub fn steps(draw: bool, what: &str, units: &str, len: u64) -> Self {
        if draw { Self::on(ProgressDrawTarget::stderr(), what, units, len) } else { Self::hidden() }
    }
    /// Bytes out of `len` of what `what` says; nothing unless `draw`.
    pub fn bytes(draw: bool, what: &str, len: u64) -> Self {
        if !draw {
            return Self::hidden();
        }
        let bar = ProgressBar::new(len);
        Self::styled(
            bar,
            "{msg}  {bar:32} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
            what,
        )
    }
    /// Work whose steps nobody counts: what it is and how long it takes already; nothing unless `draw`.
    pub fn elapsed(draw: bool, what: &str) -> Self {
        if !draw {
            return Self::hidden();
        }
        let progress = Self::styled(ProgressBar::new_spinner(), "{spinner} {msg}  {elapsed}", what);
        progress.0.enable_steady_tick(TICK);
        progress
    }

    fn on(target: ProgressDrawTarget, what: &str, units: &str, len: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(len), target);
        Self::styled(
            bar,
            &format!(
                "{{msg}}  {{bar:32}} {{human_pos}}/{{human_len}} {units}  {{rate}}  {{eta}} left"
            ),
            what,
        )
    }
    fn styled(bar: ProgressBar, template: &str, what: &str) -> Self {
        bar.set_style(progress_style(template));
        bar.set_message(what.to_owned());
        Self(bar)
    }

    /// So many steps or bytes more are done.
    pub fn inc(&self, steps: u64) {
        self.0.inc(steps);
    }
    /// The message before the bar.
    pub fn say(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }
    /// Runs `f`, which may print, without the bar.
    pub fn suspend<T>(&self, f: impl FnOnce() -> T) -> T {
        self.0.suspend(f)
    }
    /// Whether nothing is drawn.
    pub fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// Keeps what is drawn.
    #[derive(Clone, Debug, Default)]
    struct Drawn(Arc<Mutex<String>>);

    impl TermLike for Drawn {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.write_str("<cleared>")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn counts_rate_and_time_left() {
        let drawn = Drawn::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(drawn.clone()), 255);
        let progress = Progress::on(target, "partitioning", "nodes", 4_000_000);
        progress.inc(1_000_000);
        std::thread::sleep(Duration::from_millis(30));
        progress.inc(1_000_000);
        let text = drawn.0.lock().unwrap().clone();
        assert!(
            text.contains("partitioning")
                && text.contains("/4,000,000 nodes")
                && text.contains("/s")
                && text.contains(" left"),
            "{text}"
        );
        drop(progress);
        assert!(drawn.0.lock().unwrap().ends_with("<cleared>"), "nothing stays");
    }

    #[test]
    fn rates_are_short() {
        assert_eq!([0.0, 0.26, 9.94, 10.0].map(rate), ["0.0/s", "0.3/s", "9.9/s", "10/s"]);
        assert_eq!([168.0115, 12_334_462.957].map(rate), ["168/s", "12,334,462/s"]);
    }

    /// Tests have no terminal.
    #[test]
    fn without_a_terminal_nothing_is_drawn() {
        use std::io::IsTerminal;
        if std::io::stderr().is_terminal() {
            return;
        }
        for progress in [
            Progress::steps(true, "a", "b", 3),
            Progress::bytes(true, "a", 3),
            Progress::elapsed(true, "a"),
            Progress::hidden(),
        ] {
            assert!(progress.is_hidden());
            progress.say("c");
            progress.inc(1);
            assert_eq!(progress.suspend(|| 7), 7);
        }
    }
}
