//! Draws progress bars on a terminal.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::counting_reader::CountingReader;

/// A progress bar on standard error with counts, rate and remaining time. Draws nothing if standard error is not a
/// terminal.
///
/// The bar is removed when this value and all its readers ([`read`](Self::read)) are dropped, unless
/// [`finish`](Self::finish) replaced it by a line of text. A bar of
/// bytes leaves a line with their number and the time if all were read, in a second or more.
#[derive(Debug)]
pub struct Progress(Arc<Bar>);

/// The bar, shared by a [`Progress`] and its readers. Dropping the last of them removes it.
#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    /// Template of the line that stays where all bytes were read.
    summary: Option<&'static str>,
}

/// Work that took less time leaves no line.
const MIN_SUMMARY: Duration = Duration::from_secs(1);

impl Drop for Bar {
    fn drop(&mut self) {
        let bar = &self.bar;
        if bar.is_finished() {
            return;
        }
        let is_complete = bar.length().is_some_and(|len| bar.position() >= len);
        match self.summary.filter(|_| is_complete && bar.elapsed() >= MIN_SUMMARY) {
            Some(template) => {
                let line = ProgressStyle::with_template(template);
                bar.set_style(line.unwrap_or_else(|_| ProgressStyle::default_bar()));
                bar.finish();
            }
            None => bar.finish_and_clear(),
        }
    }
}

/// Interval at which a bar without steps is redrawn.
const TICK: Duration = Duration::from_millis(250);

fn target(draw: bool) -> ProgressDrawTarget {
    if draw { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

fn rate(per_sec: f64) -> String {
    if per_sec < 10.0 {
        format!("{per_sec:.1}/s")
    } else {
        format!("{}/s", HumanCount(per_sec as u64))
    }
}

impl Progress {
    /// A bar that draws nothing.
    pub fn hidden() -> Self {
        Self::of(ProgressBar::hidden(), None)
    }
    /// A bar of `len` steps (`None`: unknown) with the message `what`; `units` is the plural noun of the steps. Hidden
    /// unless `draw`.
    pub fn steps(draw: bool, what: &str, units: &str, len: impl Into<Option<u64>>) -> Self {
        Self::on(target(draw), what, units, len.into())
    }
    /// A bar of `len` bytes (`None`: unknown) with the message `what`. Hidden unless `draw`.
    pub fn bytes(draw: bool, what: &str, len: impl Into<Option<u64>>) -> Self {
        Self::bytes_on(target(draw), what, len.into())
    }
    /// A spinner with the message `what` and the elapsed time, for work without steps. Hidden unless `draw`.
    pub fn elapsed(draw: bool, what: &str) -> Self {
        if !draw {
            return Self::hidden();
        }
        let template = (None, "{spinner} {msg}  {elapsed}");
        let progress = Self::of(Self::styled(ProgressDrawTarget::stderr(), template, what), None);
        progress.0.bar.enable_steady_tick(TICK);
        progress
    }

    fn on(target: ProgressDrawTarget, what: &str, units: &str, len: Option<u64>) -> Self {
        let template = match len {
            Some(_) => format!(
                "{{msg}}  {{bar:32}} {{human_pos}}/{{human_len}} {units}  {{rate}}  {{eta}} left"
            ),
            None => format!("{{msg}}  {{spinner}} {{human_pos}} {units}  {{rate}}"),
        };
        Self::of(Self::styled(target, (len, &template), what), None)
    }
    fn bytes_on(target: ProgressDrawTarget, what: &str, len: Option<u64>) -> Self {
        let template = match len {
            Some(_) => "{msg}  {bar:32} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
            None => "{msg}  {spinner} {bytes}  {bytes_per_sec}",
        };
        let summary = "{msg}  {total_bytes} in {elapsed}";
        Self::of(Self::styled(target, (len, template), what), Some(summary))
    }
    fn of(bar: ProgressBar, summary: Option<&'static str>) -> Self {
        Self(Arc::new(Bar { bar, summary }))
    }
    fn styled(
        target: ProgressDrawTarget,
        (len, template): (Option<u64>, &str),
        what: &str,
    ) -> ProgressBar {
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        // Steps per second: whole numbers from 10 on.
        let style =
            style.with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                // A failed write is harmless: the bar is redrawn later.
                let _ = out.write_str(&rate(state.per_sec()));
            });
        let bar = ProgressBar::with_draw_target(len, target).with_style(style);
        bar.set_message(what.to_owned());
        bar
    }

    /// Starts at `done` steps or bytes. Rate and remaining time are computed from the rest alone.
    #[must_use]
    pub fn resumed_at(self, done: u64) -> Self {
        self.0.bar.set_position(done);
        self.0.bar.reset_eta();
        self
    }
    /// Wraps a reader so that its bytes advance the bar. The bar lives at least as long as the reader.
    pub fn read<R: Read>(&self, reader: R) -> impl Read + use<R> {
        let bar = self.0.clone();
        CountingReader { inner: reader, count: move |bytes| bar.bar.inc(bytes) }
    }
    /// Advances the bar.
    pub fn inc(&self, steps: u64) {
        self.0.bar.inc(steps);
    }
    /// Sets the message before the bar.
    pub fn say(&self, what: impl Into<String>) {
        self.0.bar.set_message(what.into());
    }
    /// Replaces the bar by `summary`, one line that remains on the terminal.
    pub fn finish(self, summary: impl Into<String>) {
        let line =
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        self.0.bar.set_style(line);
        self.0.bar.finish_with_message(summary.into());
    }
    /// Hides the bar while `f` runs, so that `f` may print.
    pub fn suspend<T>(&self, f: impl FnOnce() -> T) -> T {
        self.0.bar.suspend(f)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use indicatif::TermLike;

    use super::*;

    /// A terminal that records its output.
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
        let progress = Progress::on(target, "partitioning", "nodes", Some(4_000_000));
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
        assert!(drawn.0.lock().unwrap().ends_with("<cleared>"), "the bar was not removed");
    }

    #[test]
    fn finish_replaces_the_bar_by_its_summary() {
        let drawn = Drawn::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(drawn.clone()), 255);
        let progress = Progress::on(target, "training", "epochs", Some(2));
        progress.inc(2);
        progress.finish("trained 2 epochs");
        let text = drawn.0.lock().unwrap().clone();
        let last = text.rsplit("<cleared>").next().unwrap();
        assert!(last.contains("trained 2 epochs") && !last.contains("/2 epochs"), "{text}");
        assert!(!text.ends_with("<cleared>"), "the summary was removed: {text}");
    }

    /// The output of a bar after `steps` steps.
    fn drawn(bar: impl Fn(ProgressDrawTarget) -> Progress, steps: u64) -> String {
        let drawn = Drawn::default();
        let progress = bar(ProgressDrawTarget::term_like_with_hz(Box::new(drawn.clone()), 255));
        std::thread::sleep(Duration::from_millis(30));
        progress.inc(steps);
        std::mem::forget(progress);
        drawn.0.lock().unwrap().clone()
    }

    #[test]
    fn bars_of_unknown_length_have_no_remaining_time() {
        let text = drawn(|target| Progress::on(target, "sorting", "edges", None), 1_500);
        assert!(text.contains("1,500 edges") && !text.contains("left"), "{text}");
        let text = drawn(|target| Progress::bytes_on(target, "reading a.txt", None), 3 << 20);
        assert!(text.contains("3.00 MiB") && !text.contains("left"), "{text}");
    }

    #[test]
    fn resumed_bars_start_at_their_position() {
        let bar =
            |target| Progress::bytes_on(target, "fetching", Some(4 << 20)).resumed_at(1 << 20);
        let text = drawn(bar, 1 << 20);
        assert!(text.contains("2.00 MiB/4.00 MiB") && text.contains(" left"), "{text}");
        let (mut read, progress) = (vec![], Progress::hidden());
        progress.read(&[0; 100][..]).read_to_end(&mut read).unwrap();
        assert_eq!((read.len(), progress.0.bar.position()), (100, 100));
    }

    /// Functions that open a file return its reader and drop the bar.
    #[test]
    fn a_bar_lives_as_long_as_its_reader() {
        let drawn = Drawn::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(drawn.clone()), 255);
        let text = || drawn.0.lock().unwrap().clone();
        let mut reader = Progress::bytes_on(target, "reading", Some(2 << 20)).read(io::repeat(0));
        std::thread::sleep(Duration::from_millis(30));
        reader.read_exact(&mut vec![0; 1 << 20]).unwrap();
        assert!(text().contains("1.00 MiB/2.00 MiB"), "{}", text());
        assert!(!text().ends_with("<cleared>"));
        drop(reader);
        assert!(text().ends_with("<cleared>"), "{}", text());
    }

    /// Only work that took a while and was completed leaves one.
    #[test]
    fn bytes_leave_a_summary() {
        let run = |bytes: usize, wait: Duration| {
            let drawn = Drawn::default();
            let target = ProgressDrawTarget::term_like_with_hz(Box::new(drawn.clone()), 255);
            let mut reader =
                Progress::bytes_on(target, "reading a.txt", Some(2 << 20)).read(io::repeat(0));
            std::thread::sleep(wait);
            reader.read_exact(&mut vec![0; bytes]).unwrap();
            drop(reader);
            drawn.0.lock().unwrap().clone()
        };
        let text = run(2 << 20, MIN_SUMMARY);
        assert!(text.contains("reading a.txt  2.00 MiB in "), "{text}");
        for (bytes, wait) in [(1 << 20, MIN_SUMMARY), (2 << 20, Duration::ZERO)] {
            let text = run(bytes, wait);
            assert!(!text.contains(" in "), "{text}");
        }
    }

    #[test]
    fn rates_have_two_significant_digits_below_ten() {
        assert_eq!([0.0, 0.26, 9.94, 10.0].map(rate), ["0.0/s", "0.3/s", "9.9/s", "10/s"]);
        assert_eq!([168.0115, 12_334_462.957].map(rate), ["168/s", "12,334,462/s"]);
    }

    #[test]
    fn bars_are_hidden_without_a_terminal() {
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
            assert!(progress.0.bar.is_hidden());
            progress.say("c");
            progress.inc(1);
            assert_eq!(progress.suspend(|| 7), 7);
        }
    }
}
