use tempfile::TempDir;

use super::*;
use crate::{AllowedTarget, DeniedTarget, ScopeConfig};

struct World {
    root: PathBuf,
    environment: BTreeMap<String, String>,
    _folder: TempDir,
}

impl World {
    fn new(folders: &[&str]) -> Self {
        // Not in a folder for temporary files: those are private, and what is in them is kept.
        let program = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work", "home", "user"].iter().chain(folders) {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let environment =
            BTreeMap::from([("HOME".to_owned(), root.join("user").to_str().unwrap().to_owned())]);
        Self { root, environment, _folder: folder }
    }

    fn with(mut self, name: &str, below: &str) -> Self {
        let value = self.root.join(below).to_str().unwrap().to_owned();
        self.environment.insert(name.to_owned(), value);
        self
    }

    fn confined(&self, mode: SandboxMode, config: &ScopeConfig) -> SandboxedCommand {
        self.confined_to(mode, &Scope::new(&self.root.join("work"), config, &self.root.join("home")))
    }

    fn confined_to(&self, mode: SandboxMode, scope: &Scope) -> SandboxedCommand {
        let sandbox = Sandbox::new(mode, &self.root.join("home"), &self.environment);
        sandbox.confine(scope, &self.environment, &self.root.join("work"), None, &[]).unwrap()
    }

    fn bounds(&self, config: &ScopeConfig) -> Bounds {
        self.confined(SandboxMode::On, config).bounds.unwrap()
    }

    /// What is kept in a folder of this world. All of it may lie in a home folder, and so its own folders be kept as well.
    fn kept_in(&self, folder: &str, bounds: &Bounds) -> Vec<String> {
        self.within(&bounds.kept).into_iter().filter(|path| path.starts_with(folder)).collect()
    }

    /// The caches in this world that a command without a session has in memory.
    fn caches(&self, bounds: &Bounds) -> Vec<String> {
        self.within(&bounds.private.iter().map(|private| private.at.clone()).collect::<Vec<_>>())
    }

    /// The paths among these that lie in this world, from its root on.
    fn within(&self, paths: &[PathBuf]) -> Vec<String> {
        let inside = paths.iter().filter_map(|path| path.strip_prefix(&self.root).ok());
        inside.map(|path| path.to_str().unwrap().to_owned()).collect()
    }
}

fn allowing(targets: &[&str]) -> ScopeConfig {
    let allowed =
        |target: &&str| AllowedTarget { target: (*target).to_owned(), permission: Permission::Write };
    ScopeConfig { allow: targets.iter().map(allowed).collect(), deny: Vec::new() }
}

/// P3
#[test]
fn a_variable_that_names_all_of_a_users_files_opens_none_of_them() {
    let world = World::new(&[]).with("XDG_CACHE_HOME", "user").with("GOCACHE", "").with("PATH", "user");

    let bounds = world.bounds(&ScopeConfig::default());

    assert_eq!(world.within(&bounds.write), ["work"]);
    assert_eq!(world.caches(&bounds), ["user/.cache"]);
    assert!(world.within(&bounds.read).is_empty());
}

/// P3
#[test]
fn nothing_in_the_home_is_opened_whatever_names_it() {
    let world =
        World::new(&["home/bin", "home/cache"]).with("PATH", "home/bin").with("PIP_CACHE_DIR", "home/cache");

    let bounds = world.bounds(&allowing(&["./", "../home/bin"]));

    assert!(world.within(&bounds.hidden).contains(&"home".to_owned()));
    assert!(bounds.kept.iter().all(|path| !path.starts_with(world.root.join("home"))));
    assert!(!world.within(&bounds.write).contains(&"home/cache".to_owned()));
    assert_eq!(world.caches(&bounds), ["user/.cache"]);
}

/// P3
#[test]
fn folders_of_commands_are_never_written_unless_the_scope_has_them() {
    let world = World::new(&["user/.cache/tool/bin"]).with("PATH", "user/.cache/tool/bin");
    let in_scope = World::new(&["work/bin"]).with("PATH", "work/bin");

    let bounds = world.bounds(&ScopeConfig::default());
    let bounds_in_scope = in_scope.bounds(&ScopeConfig::default());

    assert_eq!(world.within(&bounds.read_only), ["user/.cache/tool/bin"]);
    assert!(bounds_in_scope.read_only.is_empty());
}

/// P3: a command could have put a link there.
#[test]
fn nothing_that_a_command_can_write_is_followed() {
    let world = World::new(&["outside"]).with("CARGO_HOME", "work/cargo").with("GOCACHE", "work/link");
    fs::create_dir(world.root.join("work/cargo")).unwrap();
    for link in ["work/link", "work/cargo/registry"] {
        std::os::unix::fs::symlink(world.root.join("outside"), world.root.join(link)).unwrap();
    }

    let bounds = world.bounds(&ScopeConfig::default());

    assert_eq!(world.within(&bounds.write), ["work"]);
    assert_eq!(world.caches(&bounds), ["user/.cache"]);
    assert!(world.within(&bounds.read).is_empty());
}

/// P3
#[test]
fn keys_are_hidden_in_an_allowed_folder_unless_the_scope_names_them() {
    let world = World::new(&["user/.ssh", "user/.aws"]);

    let around = world.bounds(&allowing(&["./", "../user"]));
    let named = world.bounds(&allowing(&["./", "../user", "../user/.ssh"]));

    assert_eq!(world.within(&around.hidden), ["home", "user/.aws", "user/.ssh"]);
    assert_eq!(world.within(&named.hidden), ["home", "user/.aws"]);
}

/// P3
#[test]
fn naming_one_thing_among_keys_or_sockets_leaves_the_others_hidden() {
    let world = World::new(&["user/.ssh"]);
    fs::write(world.root.join("user/.ssh/known_hosts"), "").unwrap();
    let among_keys = allowing(&["./", "../user", "../user/.ssh/known_hosts"]);
    let among_sockets = allowing(&["./", "/run/longhaul/one"]);

    let keys = world.bounds(&among_keys);
    let sockets = world.bounds(&among_sockets);

    assert!(world.within(&keys.hidden).contains(&"user/.ssh".to_owned()));
    assert_eq!(world.kept_in("user/", &keys), ["user/.ssh/known_hosts"]);
    assert!(keys.write.contains(&world.root.join("user/.ssh/known_hosts")));
    assert!(sockets.hidden.contains(&PathBuf::from("/run")));
    assert!(sockets.kept.contains(&PathBuf::from("/run/longhaul/one")));
}

/// P3: the user's shell and login run them later, outside of any sandbox.
#[test]
fn startup_files_are_read_only_where_the_scope_has_the_home_folder_and_does_not_name_them() {
    let world = World::new(&["user/.config/autostart", "user/.local/bin"]);
    fs::write(world.root.join("user/.bashrc"), "").unwrap();

    let around = world.bounds(&allowing(&["./", "../user"]));
    let named = world.bounds(&allowing(&["./", "../user", "../user/.bashrc"]));
    let elsewhere = world.bounds(&allowing(&["./"]));

    let there = |bounds: &Bounds| {
        let read_only = bounds.read_only.iter().filter(|path| path.exists()).cloned().collect::<Vec<_>>();
        world.within(&read_only)
    };
    let folders = ["user/.config/autostart", "user/.local/bin"];
    assert_eq!(there(&around), ["user/.bashrc", folders[0], folders[1]]);
    assert_eq!(there(&named), folders);
    assert!(elsewhere.read_only.is_empty() && elsewhere.placeholders.is_empty());
    for placeholder in &around.placeholders {
        assert!(around.read_only.contains(&placeholder.at), "{placeholder:?}");
    }
}

/// A2, P3: the agent that starts a subagent is not the user, and can lift no protection by naming a file.
#[test]
fn a_subagent_whose_scope_names_a_startup_file_can_not_write_it() {
    let world = World::new(&[]);
    let bashrc = world.root.join("user/.bashrc");
    fs::write(&bashrc, "").unwrap();
    let read_only = |targets: &[&str]| {
        let scope = Scope::new(&world.root.join("work"), &allowing(targets), &world.root.join("home"));
        let scope = scope.narrow_to([(bashrc.clone(), Permission::Write)]);
        let bounds = world.confined_to(SandboxMode::On, &scope).bounds.unwrap();
        assert!(bounds.write.contains(&bashrc), "{:?}", bounds.write);
        bounds.read_only.contains(&bashrc)
    };

    assert!(read_only(&["./", "../user"]));
    assert!(!read_only(&["./", "../user", "../user/.bashrc"]));
}

/// P3: on some systems `/home` is a link.
#[test]
fn a_missing_folder_of_path_is_made_where_the_home_folder_is_reached_through_a_link() {
    let world = World::new(&["disk/user"]).with("HOME", "people/user").with("PATH", "people/user/tools");
    std::os::unix::fs::symlink(world.root.join("disk"), world.root.join("people")).unwrap();

    let bounds = world.bounds(&allowing(&["./", "../disk/user"]));

    let made: Vec<PathBuf> = bounds.placeholders.iter().map(|made| made.at.clone()).collect();
    assert!(made.contains(&world.root.join("disk/user/tools")), "{made:?}");
}

/// P3: or one command could keep all later ones from running.
#[test]
fn a_link_in_place_of_a_key_does_not_hide_what_commands_need() {
    let world = World::new(&["user/.ssh"]);
    let config = allowing(&["./", "../user"]);
    std::os::unix::fs::symlink("/usr", world.root.join("user/.netrc")).unwrap();
    std::os::unix::fs::symlink(world.root.join("work"), world.root.join("user/.aws")).unwrap();

    let bounds = world.bounds(&config);

    assert_eq!(world.within(&bounds.hidden), ["home", "user/.ssh"]);
    assert!(!bounds.hidden.contains(&PathBuf::from("/usr")));
}

/// P3: a command that can write everything can also put links everywhere.
#[test]
fn keys_are_hidden_where_the_users_folder_is_reached_through_a_link_that_can_be_written() {
    let world = World::new(&["disk/user/.ssh", "disk/user/.config/pip", "disk/user/.rustup"])
        .with("HOME", "people/user")
        .with("PATH", "people/user/bin");
    std::os::unix::fs::symlink("disk", world.root.join("people")).unwrap();
    fs::write(world.root.join("disk/user/.config/pip/pip.conf"), "key").unwrap();

    let all = world.bounds(&allowing(&["./", "/"]));
    let link_alone = world.bounds(&allowing(&["./", "../people", "../disk/user/.ssh/known_hosts"]));

    assert_eq!(world.within(&all.hidden), ["disk/user/.ssh", "home"]);
    assert_eq!(world.within(&link_alone.hidden), ["disk/user", "disk/user/.ssh", "home"]);
    for bounds in [&all, &link_alone] {
        assert_eq!(world.within(&bounds.emptied), ["disk/user/.config/pip/pip.conf"]);
    }
    assert!(!world.within(&all.read).contains(&"disk/user/.rustup".to_owned()));
}

/// P3: a denied thing stays denied wherever it is moved while the scope lives.
#[test]
fn what_is_denied_is_hidden_under_every_path_that_it_has() {
    let world = World::new(&["work/denied"]);
    let denied = DeniedTarget { target: "denied".to_owned(), permission: Permission::Read };
    let config = ScopeConfig { allow: Vec::new(), deny: vec![denied] };
    let scope = Scope::new(&world.root.join("work"), &config, &world.root.join("home"));

    fs::rename(world.root.join("work/denied"), world.root.join("work/moved")).unwrap();
    let hidden = super::denied(&scope, Permission::Read);

    assert_eq!(world.within(&hidden), ["work/denied", "work/moved", "home"]);
}

/// P3
#[test]
fn a_folder_for_temporary_files_that_can_not_be_written_is_not_named() {
    let outside = World::new(&["outside"]).with("TMPDIR", "outside");
    let inside = World::new(&["work/tmp"]).with("TMPDIR", "work/tmp");

    let names = [outside, inside].map(|world| {
        let confined = world.confined(SandboxMode::On, &ScopeConfig::default());
        confined.environment.contains_key("TMPDIR")
    });

    assert_eq!(names, [false, true]);
}

/// P3
#[test]
fn a_session_has_temporary_folders_of_its_own_on_disk() {
    let world = World::new(&[]);
    let scope = Scope::new(&world.root.join("work"), &ScopeConfig::default(), &world.root.join("home"));
    let sandbox = Sandbox::new(SandboxMode::Strict, &world.root.join("home"), &world.environment);
    let session = SessionId::generate();

    let confined =
        sandbox.confine(&scope, &world.environment, &world.root.join("work"), Some(session), &[]).unwrap();

    let kept_in = world.root.join("home/tmp").join(session.to_string()).join("tmp");
    let expected = Private { at: "/tmp".into(), kept_in: Some(kept_in) };
    assert!(confined.bounds.unwrap().private.contains(&expected));
}

#[test]
fn off_is_nothing_at_all() {
    let world = World::new(&["outside"]).with("TMPDIR", "outside");

    let confined = world.confined(SandboxMode::Off, &ScopeConfig::default());

    assert_eq!(confined, SandboxedCommand { bounds: None, environment: world.environment.clone() });
}

/// P3: each of these links could have been put there by an earlier command, which may write the cache that it lies in.
#[test]
fn nothing_is_followed_out_of_a_cache_whatever_names_it_and_in_whatever_order() {
    let world = World::new(&["user/private", "user/.cache/envs", "user/xc", "user/.config", "user/proj"])
        .with("VIRTUAL_ENV", "user/.cache/envs/one")
        .with("PIP_CACHE_DIR", "user/xc/pip")
        .with("XDG_CACHE_HOME", "user/xc")
        .with("CARGO_TARGET_DIR", "to-user/.cache/target")
        .with("PATH", "to-user/.cache/bin");
    let links = [
        ("to-user", "user"),
        ("user/.cache/envs/one", "user/private"),
        ("user/xc/pip", "user/.config"),
        ("user/.cache/target", "user/proj"),
        ("user/.cache/bin", "user/private"),
    ];
    for (link, leads_to) in links {
        std::os::unix::fs::symlink(world.root.join(leads_to), world.root.join(link)).unwrap();
    }

    let bounds = world.bounds(&ScopeConfig::default());

    assert_eq!(world.within(&bounds.write), ["work"]);
    assert_eq!(world.caches(&bounds), ["user/.cache", "user/xc"]);
    assert!(world.within(&bounds.read).is_empty(), "{:?}", world.within(&bounds.read));
}

/// P3: a link that no command could have put there is the user's own doing.
#[test]
fn a_cache_that_the_user_keeps_elsewhere_is_followed() {
    let world = World::new(&["disk/cache", "disk/env"]).with("VIRTUAL_ENV", "user/env");
    std::os::unix::fs::symlink("../disk/cache", world.root.join("user/.cache")).unwrap();
    std::os::unix::fs::symlink("../disk/env", world.root.join("user/env")).unwrap();

    let bounds = world.bounds(&ScopeConfig::default());

    assert_eq!(world.within(&bounds.write), ["work"]);
    assert_eq!(world.caches(&bounds), ["disk/cache"]);
    assert_eq!(world.within(&bounds.read), ["disk/env"]);
}

/// P3
#[test]
fn keys_in_toolchains_and_caches_are_hidden_and_files_that_are_out_of_reach_need_not_be() {
    let world =
        World::new(&["user/.cache/huggingface", "user/.local/share/uv/credentials", "user/.config/pip"]);
    for file in ["user/.cache/huggingface/token", "user/.config/pip/pip.conf", "user/.pgpass"] {
        fs::write(world.root.join(file), "key").unwrap();
    }

    let bounds = world.bounds(&ScopeConfig::default());
    let all = world.bounds(&allowing(&["./", "../user"]));

    let keys = ["user/.cache/huggingface/token", "user/.local/share/uv/credentials"];
    assert_eq!(world.within(&bounds.hidden), ["home", "user", keys[0], keys[1]]);
    assert_eq!(world.within(&bounds.emptied), ["user/.config/pip/pip.conf"]);
    assert_eq!(world.within(&all.hidden), ["home", keys[0], keys[1], "user/.pgpass"]);
}

/// P3
#[test]
fn what_lies_beside_a_folder_of_programs_can_be_read_unless_it_is_a_persons() {
    let folders = ["tool/bin", "tool/lib", "tool/other", "user/bin", "user/lib", "user/share"];
    let world = World::new(&folders);
    let path = [world.root.join("tool/bin"), world.root.join("user/bin")];
    let path = path.map(|folder| folder.to_str().unwrap().to_owned()).join(":");
    let environment = BTreeMap::from([("PATH".to_owned(), path)]);
    let world = World { environment: environment.into_iter().chain(world.environment).collect(), ..world };

    let bounds = world.bounds(&ScopeConfig::default());

    assert_eq!(world.within(&bounds.read), ["tool/bin", "tool/lib", "user/bin"]);
}

/// P3
#[test]
fn a_cache_is_made_for_a_program_that_is_there() {
    let without = World::new(&[]);
    let with = World::new(&["tool/bin"]).with("PATH", "tool/bin");
    fs::write(with.root.join("tool/bin/npm"), "").unwrap();

    let made = [without, with].map(|world| {
        world.bounds(&ScopeConfig::default());
        world.root.join("user/.npm").is_dir()
    });

    assert_eq!(made, [false, true]);
}

/// K17
#[test]
fn strict_takes_out_variables_that_are_called_like_keys() {
    let keys = [
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "PGPASSWORD",
        "PASSWORD",
        "db_pass",
        "SMTP_PASSPHRASE",
        "CLIENTSECRET",
        "signing_key",
        "OPENAI_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ];
    let mut world = World::new(&[]).with("TOKENIZERS_PARALLELISM", "work").with("KEYBOARD", "work");
    world.environment.extend(keys.map(|name| (name.to_owned(), "key".to_owned())));

    let names = [SandboxMode::On, SandboxMode::Strict].map(|mode| {
        let confined = world.confined(mode, &ScopeConfig::default());
        confined.environment.into_keys().collect::<Vec<_>>()
    });

    assert!(keys.iter().all(|key| names[0].contains(&(*key).to_owned())));
    assert_eq!(names[1], [GIT_DISCOVERY_VARIABLE, "HOME", "KEYBOARD", "TOKENIZERS_PARALLELISM"]);
}

/// P3: a socket in it can't be connected then, nor can anything in it be asked for by name.
#[test]
fn the_home_folder_is_hidden_but_for_what_is_allowed_in_it() {
    let world = World::new(&["user/.rustup", "user/project"]);

    let bounds = world.bounds(&allowing(&["./", "../user/project"]));

    assert!(world.within(&bounds.hidden).contains(&"user".to_owned()));
    assert_eq!(world.kept_in("user/", &bounds), ["user/.cache", "user/.rustup", "user/project"]);
}

/// P3: where the command sees the home folder, what is known to hold sockets is hidden, and every socket that is bound there.
#[test]
fn sockets_are_hidden_in_a_home_folder_that_the_scope_contains() {
    let world = World::new(&["user/.colima/default", "user/tool/run", "user/.ssh", "user/a/b/c/d/e f"]);
    let socket = |name: &str| std::os::unix::net::UnixListener::bind(world.root.join(name)).unwrap();
    let _sockets = [
        socket("user/tool/run/agent"),
        socket("user/a/b/c/d/e f/deep"),
        socket("user/.colima/default/docker.sock"),
    ];

    let bounds = world.bounds(&allowing(&["./", "../user"]));
    let named = world.bounds(&allowing(&["./", "../user", "../user/tool/run/agent"]));

    let hidden = world.within(&bounds.hidden);
    assert!(
        ["user/.colima", "user/tool/run/agent", "user/a/b/c/d/e f/deep"]
            .iter()
            .all(|path| hidden.contains(&(*path).to_owned())),
        "{hidden:?}"
    );
    assert!(!hidden.contains(&"user".to_owned()));
    assert!(!world.within(&named.hidden).contains(&"user/tool/run/agent".to_owned()));
}

/// P3: a path through a link leads nowhere where the link is hidden.
#[test]
fn links_to_what_is_allowed_are_kept_where_they_are_hidden() {
    let world = World::new(&["disk/cargo", "disk/data"]).with("PATH", "user/bin");
    for (link, leads_to) in
        [("user/.cargo", "disk/cargo"), ("user/data", "disk/data"), ("user/bin", "disk/cargo")]
    {
        std::os::unix::fs::symlink(world.root.join(leads_to), world.root.join(link)).unwrap();
    }

    let bounds = world.bounds(&allowing(&["./", "../user/data"]));

    let kept = world.within(&bounds.kept);
    assert!(
        ["user/.cargo", "user/bin", "user/data"].iter().all(|path| kept.contains(&(*path).to_owned())),
        "{kept:?}"
    );
}

/// P3: what a command puts into a cache the user never meets.
#[test]
fn the_caches_of_a_session_are_layers_one_for_each_place_that_has_some() {
    let folders =
        ["user/.cache", "user/.npm", "elsewhere/cargo/registry", "elsewhere/cargo/git", "elsewhere/go"];
    let world = World::new(&folders).with("CARGO_HOME", "elsewhere/cargo").with("GOCACHE", "elsewhere/go");
    let scope = Scope::new(&world.root.join("work"), &ScopeConfig::default(), &world.root.join("home"));
    let sandbox = Sandbox::new(SandboxMode::On, &world.root.join("home"), &world.environment);
    let session = SessionId::generate();

    let confined = sandbox.confine(&scope, &world.environment, &world.root.join("work"), Some(session), &[]);

    let overlays = confined.unwrap().bounds.unwrap().overlays;
    let over = |overlay: &longhaul_keeper::Overlay| {
        (world.within(std::slice::from_ref(&overlay.over)), world.within(&overlay.at))
    };
    let expected = [
        ("elsewhere", vec!["elsewhere/go"]),
        ("elsewhere/cargo", vec!["elsewhere/cargo/git", "elsewhere/cargo/registry"]),
        ("user", vec!["user/.cache", "user/.npm"]),
    ];
    let expected =
        expected.map(|(over, at)| (vec![over.to_owned()], at.into_iter().map(str::to_owned).collect()));
    assert_eq!(overlays.iter().map(over).collect::<Vec<_>>(), expected);
    assert!(
        overlays.iter().all(|overlay| overlay.kept_in.starts_with(sandbox.session_temporary_folder(session)))
    );
}

/// E5: the folder of a skill in use can be read wherever it is, is never writable, and opens nothing else of Longhaul's home.
#[test]
fn the_folders_of_skills_in_use_are_readable_and_read_only() {
    let world = World::new(&[]);
    let folder = |path: &str| {
        fs::create_dir_all(world.root.join(path)).unwrap();
        world.root.join(path)
    };
    let (of_user, of_home) = (folder("user/.agents/skills/mine"), folder("home/skills/own"));
    let (of_project, private) = (folder("work/.agents/skills/theirs"), folder("home/tasks/one"));
    let link = world.root.join("user/.agents/skills/link");
    std::os::unix::fs::symlink(world.root.join("user"), &link).unwrap();
    let scope = Scope::new(&world.root.join("work"), &ScopeConfig::default(), &world.root.join("home"));
    let sandbox = Sandbox::new(SandboxMode::On, &world.root.join("home"), &world.environment);
    let in_use = [of_user.clone(), of_home.clone(), of_project.clone(), private.clone(), link.clone()];

    let confined = sandbox.confine(&scope, &world.environment, &world.root.join("work"), None, &in_use);

    let bounds = confined.unwrap().bounds.unwrap();
    assert!(bounds.read.contains(&of_user) && bounds.read.contains(&of_home), "{:?}", bounds.read);
    assert!(bounds.kept.contains(&of_home), "{:?}", bounds.kept);
    assert!(bounds.read_only.contains(&of_project), "{:?}", bounds.read_only);
    let reachable = |path: &PathBuf| {
        bounds.read.contains(path) || bounds.write.contains(path) || bounds.kept.contains(path)
    };
    assert!(!reachable(&private) && !reachable(&link), "{bounds:?}");
}
