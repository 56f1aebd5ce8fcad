use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::tcgetattr;

/// How long a test waits for what it expects before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program in a terminal of its own, for what people see and type there. It ends with the test.
pub struct Terminal {
    process: Child,
    keys: File,
    /// Kept open, so that the terminal can be looked at when the program has left it.
    screen: Option<File>,
    printed: Receiver<Vec<u8>>,
    unread: String,
}

impl Terminal {
    /// Starts a program in a new terminal.
    #[allow(unsafe_code, reason = "only between fork and exec can a process get a terminal of its own")]
    pub fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let screen = File::options().read(true).write(true).open(name).unwrap();
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
        let mut prints = keys.try_clone().unwrap();
        let (send, printed) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = prints.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { process, keys, screen: Some(screen), printed, unread: String::new() }
    }

    /// Types.
    pub fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is printed; returns what was printed before it.
    pub fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(place) = self.unread.find(text) {
                let before = self.unread[..place].to_owned();
                self.unread.drain(..place + text.len());
                return before;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let bytes = self.printed.recv_timeout(left);
            let bytes = bytes.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.unread));
            self.unread.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    /// Sends the program a signal that does not come from the terminal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// From here on no file of the program may be longer than this.
    pub fn let_files_grow_to(&self, bytes: Option<u64>) {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(Pid::from_child(&self.process)), Resource::Fsize, limit).unwrap();
    }

    /// Waits until the program has ended.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
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

    /// What was printed and not waited for, up to the end of the program.
    pub fn rest(mut self) -> String {
        self.wait();
        // The program's end of the terminal was the last but this one, so reading ends, too.
        self.screen = None;
        while let Ok(bytes) = self.printed.recv_timeout(PATIENCE) {
            self.unread.push_str(&String::from_utf8_lossy(&bytes));
        }
        std::mem::take(&mut self.unread)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
