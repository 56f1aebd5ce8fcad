use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::TerminalScreen;

/// How long a test waits for what it expects before it gives up.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// A program in a terminal of its own, for what people see and type there. It ends with the test.
pub struct Terminal {
    process: Child,
    /// Nothing, when it is gone.
    keys: Option<File>,
    reading: Option<OutputThread>,
    /// Kept open, so that the terminal can be looked at when the program has left it.
    screen: Option<File>,
    printed: Receiver<Vec<u8>>,
    unread: String,
    /// The screen as a user sees it.
    seen: TerminalScreen,
}

/// Columns and rows.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

impl Terminal {
    /// Starts a program in a new terminal.
    pub fn start(command: Command) -> Self {
        Self::of_size(command, DEFAULT_SIZE)
    }

    /// Starts a program in a new terminal of this size.
    #[allow(unsafe_code, reason = "only between fork and exec can a process get a terminal of its own")]
    pub fn of_size(mut command: Command, size: (u16, u16)) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let screen = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&screen, winsize(size)).unwrap();
        let end = || screen.try_clone().unwrap();
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: both are single system calls, which are allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let process = command.spawn().unwrap();
        let keys = File::from(master);
        let (reading, printed) = OutputThread::start(keys.try_clone().unwrap());
        let (keys, reading, screen) = (Some(keys), Some(reading), Some(screen));
        Self {
            process,
            keys,
            reading,
            screen,
            printed,
            unread: String::new(),
            seen: TerminalScreen::new(size),
        }
    }

    /// Types.
    pub fn keys(&mut self, keys: &str) {
        self.keys.as_mut().expect("a terminal that is gone has no keys").write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is printed; returns what was printed before it.
    pub fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            if let Some(place) = self.unread.find(text) {
                let before = self.unread[..place].to_owned();
                self.unread.drain(..place + text.len());
                return before;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let bytes = self.printed.recv_timeout(left);
            let bytes = bytes.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.unread));
            self.came(&bytes);
        }
    }

    fn came(&mut self, bytes: &[u8]) {
        self.seen.show(bytes);
        self.unread.push_str(&String::from_utf8_lossy(bytes));
    }

    /// Waits until this can be read on the screen, or above it; returns all that can be.
    pub fn wait_to_see(&mut self, text: &str) -> String {
        self.wait_until(text, |seen| seen.contains(text))
    }

    /// Waits until what can be read, on the screen and above it, is as it should be; returns it.
    pub fn wait_until(&mut self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            let seen = self.seen();
            if is_so(&seen) {
                return seen;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let bytes = self.printed.recv_timeout(left);
            let bytes = bytes.unwrap_or_else(|_| panic!("not seen: {what}\n{seen}"));
            self.came(&bytes);
        }
    }

    /// Everything that can be read: what the terminal has kept, and what is on its screen.
    pub fn seen(&mut self) -> String {
        self.seen.all().join("\n")
    }

    /// The screen as a user sees it.
    pub fn screen(&self) -> &TerminalScreen {
        &self.seen
    }

    /// The rows of the screen as they are now, without what is above it.
    pub fn rows(&self) -> Vec<String> {
        self.seen.rows()
    }

    /// Waits until a row of the screen is exactly this. What is above the screen is not looked at, so it costs little.
    pub fn wait_for_row(&mut self, wanted: &str) {
        let deadline = Instant::now() + WAIT_LIMIT;
        while !self.seen.rows().iter().any(|row| row == wanted) {
            let left = deadline.saturating_duration_since(Instant::now());
            let bytes = self.printed.recv_timeout(left);
            let bytes = bytes.unwrap_or_else(|_| panic!("no row {wanted:?} in {:#?}", self.rows()));
            self.seen.show(&bytes);
        }
    }

    /// Reads what the program prints meanwhile, like a terminal that is left open.
    pub fn watch_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while let Ok(bytes) = self.printed.recv_timeout(until.saturating_duration_since(Instant::now())) {
            self.seen.show(&bytes);
        }
    }

    /// The process of the program.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Gives the terminal another size, which the program is told of.
    pub fn resize(&mut self, (width, height): (u16, u16)) {
        self.seen.resize((width, height));
        let screen = self.screen.as_ref().unwrap();
        tcsetwinsize(screen, winsize((width, height))).unwrap();
    }

    /// Sends the program a signal that does not come from the terminal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Stops reading what the program prints, like a stalled connection: soon the program blocks.
    pub fn hold(&mut self) {
        self.reading.take().expect("it is held once").stop();
    }

    /// The terminal is gone, as when its window is closed or its connection breaks.
    pub fn hang_up(&mut self) {
        // The reading thread keeps the terminal open.
        self.reading.take().expect("it is hung up once").stop();
        self.keys = None;
    }

    /// From here on no file of the program may be longer than this.
    pub fn let_files_grow_to(&self, bytes: Option<u64>) {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(Pid::from_child(&self.process)), Resource::Fsize, limit).unwrap();
    }

    /// Waits until the program has ended.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end: {:?}", self.unread);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What the terminal does with what is typed.
    pub fn modes(&self) -> String {
        let screen = self.screen.as_ref().unwrap();
        let modes = tcgetattr(screen).unwrap();
        format!("{:?} {:?} {:?}", modes.input_modes, modes.output_modes, modes.local_modes)
    }

    /// Everything that can be read when the program has ended, on the screen and above it. The terminal itself can't be looked
    /// at any more after this.
    pub fn seen_at_the_end(&mut self) -> String {
        self.wait();
        // The program's end of the terminal was the last but this one, so reading ends, too.
        self.screen = None;
        while let Ok(bytes) = self.printed.recv_timeout(WAIT_LIMIT) {
            self.came(&bytes);
        }
        self.seen()
    }

    /// What was printed and not waited for, up to the end of the program.
    pub fn rest(mut self) -> String {
        self.wait();
        // The program's end of the terminal was the last but this one, so reading ends, too.
        self.screen = None;
        while let Ok(bytes) = self.printed.recv_timeout(WAIT_LIMIT) {
            self.came(&bytes);
        }
        std::mem::take(&mut self.unread)
    }
}

fn winsize((width, height): (u16, u16)) -> Winsize {
    Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Reads what a program prints, until it is told to stop or there is no more.
struct OutputThread {
    /// Closed when it should stop.
    stop: OwnedFd,
    thread: JoinHandle<()>,
}

impl OutputThread {
    fn start(mut prints: File) -> (Self, Receiver<Vec<u8>>) {
        let (send, printed) = channel();
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let mut ready = [PollFd::new(&prints, PollFlags::IN), PollFd::new(&stopped, PollFlags::IN)];
                let is_stopped = poll(&mut ready, None).is_ok() && !ready[1].revents().is_empty();
                if is_stopped {
                    return;
                }
                match prints.read(&mut bytes) {
                    Ok(count @ 1..) if send.send(bytes[..count].to_vec()).is_ok() => {}
                    _ => return,
                }
            }
        });
        (Self { stop, thread }, printed)
    }

    fn stop(self) {
        drop(self.stop);
        self.thread.join().unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
