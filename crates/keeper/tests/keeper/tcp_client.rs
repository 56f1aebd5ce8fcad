//! H5: whether the client of a connection is a command, also one that hides.

use std::fs;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use longhaul_keeper::{Bounds, ProcessNamespace, Spec, Task, is_client_a_command};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::home::{Home, until};

const ADDRESS: &str = "LONGHAUL_TEST_ADDRESS";
const DISGUISE: &str = "LONGHAUL_TEST_DISGUISE";

/// A server that commands connect to.
struct Place {
    home: Home,
    listener: TcpListener,
}

impl Place {
    fn new() -> Self {
        Self { home: Home::new(), listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Starts a command that connects and makes the file `ready`. Returns the connection then.
    fn connected(&self, spec: &Spec) -> (Task, TcpStream) {
        let task = self.home.tasks.start(spec).unwrap();
        let (stream, _) = self.listener.accept().unwrap();
        until("the client", || self.home.folder.join("ready").exists().then_some(()));
        fs::remove_file(self.home.folder.join("ready")).unwrap();
        (task, stream)
    }

    /// A command that runs the client below in this disguise.
    fn client(&self, disguise: &str, command: &str) -> Spec {
        let program = std::env::current_exe().unwrap();
        let arguments = "tcp_client::plays_the_client --exact --ignored --nocapture --test-threads=1";
        let command = command.replace("CLIENT", &format!("{} {arguments}", program.display()));
        let mut spec = self.home.spec(&command);
        spec.environment.insert(ADDRESS.to_owned(), self.address().to_string());
        spec.environment.insert(DISGUISE.to_owned(), disguise.to_owned());
        spec
    }
}

fn is_command(stream: &TcpStream) -> bool {
    is_client_a_command(stream.peer_addr().unwrap(), stream.local_addr().unwrap())
}

/// H5
#[test]
fn a_command_is_known_as_a_client_whatever_it_does_to_hide() {
    for (disguise, command) in [
        ("none", "CLIENT"),
        ("none", "(setsid sh -c 'CLIENT & ' &) ; sleep 600"),
        ("not dumpable", "CLIENT"),
        ("a thread with files of its own", "CLIENT"),
        ("passed on and not received", "CLIENT"),
    ] {
        let place = Place::new();

        let (task, stream) = place.connected(&place.client(disguise, command));

        assert!(is_command(&stream), "{disguise}: {command}");
        place.home.tasks.kill(task.id()).unwrap();
    }
}

/// H5: its request may be read after it has gone.
#[test]
fn a_client_that_has_closed_its_connection_is_a_command_while_one_runs() {
    let place = Place::new();

    let (task, mut stream) = place.connected(&place.client("closed", "CLIENT; touch ready; sleep 600"));
    stream.read_to_end(&mut Vec::new()).unwrap();

    assert!(is_command(&stream));
    place.home.tasks.kill(task.id()).unwrap();
}

/// H5: in a PID namespace no process leaves the descendants of its keeper.
#[test]
fn a_command_in_a_sandbox_is_known_as_a_client_and_this_process_is_not() {
    let place = Place::new();
    let folder = place.home.folder.clone();
    let bounds = Bounds {
        read: vec![PathBuf::from("/")],
        write: vec![folder, PathBuf::from("/dev/null")],
        processes: ProcessNamespace::Own,
        ..Bounds::default()
    };
    let (host, port) = (place.address().ip(), place.address().port());
    let connects = format!("exec 3<>/dev/tcp/{host}/{port}; touch ready; exec sleep 600");
    let command = format!("(setsid bash -c '{connects}' &); sleep 600");

    let (task, of_command) = place.connected(&Spec { bounds: Some(bounds), ..place.home.spec(&command) });
    let mut ours = TcpStream::connect(place.address()).unwrap();
    let (of_ours, _) = place.listener.accept().unwrap();
    ours.write_all(b"x").unwrap();

    assert!(is_command(&of_command));
    let since = Instant::now();
    assert!(!is_command(&of_ours));
    println!("looking for the process of a client took {:?}", since.elapsed());
    place.home.tasks.kill(task.id()).unwrap();
}

#[test]
#[ignore = "a part that other tests play in another process"]
fn plays_the_client() {
    let address = std::env::var(ADDRESS).unwrap();
    let connect = move || TcpStream::connect(&address).unwrap();
    let ready = || fs::write("ready", "").unwrap();
    match std::env::var(DISGUISE).unwrap().as_str() {
        "closed" => drop(connect()),
        "not dumpable" => {
            set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap();
            hold(connect(), ready);
        }
        "a thread with files of its own" => {
            std::thread::spawn(move || {
                separate_files();
                hold(connect(), ready);
            })
            .join()
            .unwrap();
        }
        "passed on and not received" => {
            let (one, other) = UnixStream::pair().unwrap();
            let stream = connect();
            let files = [stream.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
            sendmsg(&one, &[IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
            drop(stream);
            hold((one, other), ready);
        }
        _ => hold(connect(), ready),
    }
}

/// Says that everything is in place, and stays until the test kills this process.
fn hold<T>(_held: T, ready: impl Fn()) {
    ready();
    std::thread::sleep(Duration::from_secs(600));
}

#[allow(unsafe_code, reason = "the standard library does not expect threads with files of their own")]
fn separate_files() {
    // SAFETY: this thread opens its files after this call, and no other uses them.
    unsafe { unshare_unsafe(UnshareFlags::FILES) }.unwrap();
}
