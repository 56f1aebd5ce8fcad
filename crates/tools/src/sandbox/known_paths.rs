//! Where programs have what they need to run: the system's folders, the user's toolchains and caches.
//!
//! Lists are separated by white space. A path that is missing on a machine is skipped.

/// Folders of the system that commands may read.
pub(super) const SYSTEM: &str = "
    /usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix /gnu /snap /home/linuxbrew/.linuxbrew /proc /sys
    /var/cache/fontconfig /var/lib/ca-certificates /var/lib/dpkg /var/lib/rpm
";

/// In `/etc`: settings that programs read to run at all. None of them holds a key.
pub(super) const SETTINGS: &str = "
    alternatives bash.bashrc bash_completion.d bashrc bindresvport.blacklist ca-certificates
    ca-certificates.conf crypto-policies debian_version default/locale dpkg ethertypes fonts gai.conf
    gitattributes gitconfig group host.conf hostname hosts inputrc ld.so.cache ld.so.conf ld.so.conf.d
    locale.alias locale.conf localtime login.defs lsb-release magic magic.mime manpath.config maven
    mime.types mtab networks nsswitch.conf openssl os-release passwd paths.d perl pip.conf pkcs11 pki
    profile profile.d protocols redhat-release resolv.conf rpc services shells ssl static terminfo timezone
    vimrc wgetrc xdg
";

/// In `/etc`: prefixes of settings with a version in their name, such as `java-21-openjdk`.
pub(super) const VERSIONED_SETTINGS: &str = "java python ruby";

/// Links in `/run`, beside the sockets of services, through which some systems reach all their programs.
pub(super) const SYSTEM_LINKS: &str = "/run/current-system /run/booted-system /run/opengl-driver";

/// Folders for temporary files, each with the name of the session's own folder that stands in for it; `None` is a folder in memory.
pub(super) const TEMPORARY_FOLDERS: &[(&str, Option<&str>)] =
    &[("/tmp", Some("tmp")), ("/var/tmp", Some("var-tmp")), ("/dev/shm", None)];

/// Variables that name a folder for temporary files.
pub(super) const TEMPORARY_VARIABLES: &str = "TMPDIR TMP TEMP TEMPDIR";

/// Devices that most programs need.
pub(super) const DEVICES: &str = "
    /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx /dev/pts
";

/// Folders that hold home folders. Commands see them as empty, except for the paths that they may reach.
pub(super) const HOME_FOLDERS: &str = "/home /root";

/// In the user's home folder: toolchains and settings of tools that commands may read.
pub(super) const TOOLCHAINS: &str = "
    .asdf .bun .cabal .cargo .config/git .config/go .config/pip .config/pnpm .config/uv .config/yarn .conda
    .deno .dotnet .fnm .gem .ghcup .gitconfig .gitignore .gitignore_global .goenv .gradle .jenv .julia
    .juliaup .linuxbrew .local/bin .local/lib .local/share/fnm .local/share/mise .local/share/pipx
    .local/share/pnpm .local/share/uv .local/state/nix .m2 .mix .nix-profile .nodenv .nvm .opam .pip .poetry
    .pyenv .rbenv .rustup .rvm .sdkman .stack .volta anaconda3 go miniconda3
";

/// Variables that name a toolchain, a part of one, or certificates.
pub(super) const TOOLCHAIN_VARIABLES: &str = "
    CARGO_HOME CONDA_PREFIX CURL_CA_BUNDLE GIT_SSL_CAINFO GOPATH GOROOT GRADLE_USER_HOME JAVA_HOME
    NODE_EXTRA_CA_CERTS NVM_DIR PIP_CERT PLAYWRIGHT_BROWSERS_PATH PYENV_ROOT REQUESTS_CA_BUNDLE RUSTUP_HOME
    SSL_CERT_DIR SSL_CERT_FILE VIRTUAL_ENV VOLTA_HOME
";

/// In the user's home folder: caches that commands may write. No folder of a `PATH`, and no settings.
pub(super) const CACHES: &str = "
    .bun/install/cache .bundle/cache .cabal/packages .cache .ccache .composer/cache .conan2/p .gradle/caches
    .gradle/daemon .gradle/native .gradle/notifications .gradle/wrapper .ivy2/cache .local/share/pnpm/store
    .m2/repository .m2/wrapper .npm .nuget/packages .pnpm-store .pub-cache/hosted .stack/pantry .yarn/berry
    go/pkg
";

/// Caches in cargo's home, which `CARGO_HOME` may move.
pub(super) const CARGO_CACHES: &str = "registry git .package-cache .package-cache-mutate .global-cache";

/// Variables that name a cache.
pub(super) const CACHE_VARIABLES: &str = "
    BUN_INSTALL_CACHE_DIR CARGO_BUILD_TARGET_DIR CARGO_TARGET_DIR CCACHE_DIR DENO_DIR GOCACHE GOMODCACHE
    NPM_CONFIG_CACHE PIP_CACHE_DIR SCCACHE_DIR UV_CACHE_DIR XDG_CACHE_HOME YARN_CACHE_FOLDER
    npm_config_cache
";

/// A cache folder that the sandbox creates before any command runs.
pub(super) struct PrecreatedCache {
    /// The folder to create it in, relative to the user's home folder. It must exist.
    pub(super) within: &'static str,
    pub(super) name: &'static str,
    /// If set, the folder is created only where this program is on `PATH`.
    pub(super) of: Option<&'static str>,
}

pub(super) const PRECREATED_CACHES: &[PrecreatedCache] = &[
    PrecreatedCache { within: "", name: ".cache", of: None },
    PrecreatedCache { within: "", name: ".npm", of: Some("npm") },
    PrecreatedCache { within: ".cargo", name: "registry", of: None },
    PrecreatedCache { within: ".cargo", name: "git", of: None },
];

/// Folders beside a `bin` of `PATH` that its programs need.
pub(super) const BESIDE_PROGRAMS: &str = "lib lib64 libexec share";

/// A variable whose name contains one of the parts, or has one of the endings, holds a secret.
pub(super) const SECRET_NAME_PARTS: &str = "SECRET PASSWORD _PASS _ACCESS_KEY _CREDENTIALS";
pub(super) const SECRET_NAME_ENDINGS: &str = "_TOKEN _KEY";
