//! A terminal, for what people see and type there.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::desk::PATIENCE;

/// A program in a terminal of its own.
pub(crate) struct Terminal {
    process: Child,
    keys: File,
    printed: Receiver<Vec<u8>>,
    unread: String,
}

impl Terminal {
    #[allow(unsafe_code, reason = "only between fork and exec can a process get a terminal of its own")]
    pub(crate) fn start(mut command: Command) -> Self {
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
        Self { process, keys, printed, unread: String::new() }
    }

    pub(crate) fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.unread.contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            let bytes = self.printed.recv_timeout(left);
            let bytes = bytes.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.unread));
            self.unread.push_str(&String::from_utf8_lossy(&bytes));
        }
        let place = self.unread.find(text).unwrap_or_default();
        self.unread.drain(..place + text.len());
    }

    /// From here on no file of the program may be longer; one that is may not grow.
    pub(crate) fn let_files_grow_to(&self, bytes: Option<u64>) {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(Pid::from_child(&self.process)), Resource::Fsize, limit).unwrap();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end: {:?}", self.unread);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Terminal {
    /// What was printed and not waited for, up to the end of the program.
    pub(crate) fn rest(mut self) -> String {
        self.wait();
        // The program's end of the terminal was the last one, so reading ends, too.
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
