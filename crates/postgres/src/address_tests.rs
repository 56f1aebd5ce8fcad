use super::*;

#[test]
fn an_address_shows_where_the_database_is_and_no_password() {
    let shown = |url: &str| {
        let address = DatabaseAddress::parse(url).unwrap();
        assert!(!format!("{address:?}").contains("sesame"), "{address:?}");
        address.to_string()
    };

    assert_eq!(
        shown("postgres://ann:sesame@db.example:5433/longhaul"),
        "postgres://ann@db.example:5433/longhaul"
    );
    assert_eq!(
        shown("postgresql://ann@one,two/longhaul?target_session_attrs=read-write&password=sesame"),
        "postgres://ann@one:5432,two:5432/longhaul"
    );
    assert_eq!(
        shown("postgres://ann@/longhaul?host=/run/postgresql&password=sesame"),
        "postgres://ann@/run/postgresql:5432/longhaul"
    );
}

#[test]
fn a_connection_over_a_network_is_encrypted_unless_the_url_says_otherwise() {
    let mode = |url: &str| DatabaseAddress::parse(url).unwrap().config.get_ssl_mode();

    assert_eq!(mode("postgres://a@db.example/x"), SslMode::Require);
    assert_eq!(mode("postgres://a@127.0.0.1/x"), SslMode::Disable);
    assert_eq!(mode("postgres://a@localhost,db.example/x"), SslMode::Require);
    assert_eq!(mode("postgres://a@db.example/x?sslmode=disable"), SslMode::Disable);
    assert_eq!(mode("postgres://a@localhost/x?sslmode=verify-full&sslrootcert=/a%20b.pem"), SslMode::Require);
}

#[test]
fn a_url_that_can_not_be_used_is_named_without_its_password() {
    for url in [
        "mysql://a:sesame@b/c",
        "postgres://a:sesame@b",
        "postgres:///c?password=sesame",
        "postgres://a:sesame@b:port/c",
        "postgres://a:sesame@b/c?sslmode=prefer",
    ] {
        let error = DatabaseAddress::parse(url).unwrap_err().to_string();

        assert!(error.starts_with("the journal's URL: ") && error.ends_with("/DATABASE"), "{error}");
        assert!(!error.contains("sesame"), "{error}");
    }
}

#[test]
fn a_password_comes_from_the_line_of_the_file_that_fits() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines = "# host:port:database:user:password\nother:*:*:*:no\ndb:5432:longhaul:ann:a\\:b\\\\c:d\n*:*:*:ann:later\n";
    std::fs::write(file.path(), lines).unwrap();
    let password = |url: &str| DatabaseAddress::parse(url).unwrap().password_in(file.path()).unwrap();

    assert_eq!(password("postgres://ann@db/longhaul").as_deref(), Some("a:b\\c:d"));
    assert_eq!(password("postgres://ann@/x?host=/run").as_deref(), Some("later"));
    assert_eq!(password("postgres://bob@db/longhaul"), None);
}

#[test]
fn a_password_of_the_file_goes_only_to_hosts_that_it_is_meant_for() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "one:5432:*:*:first\ntwo:5432:*:*:first\nthree:*:*:*:other\n").unwrap();
    let password = |url: &str| DatabaseAddress::parse(url).unwrap().password_in(file.path()).unwrap();

    assert_eq!(password("postgres://ann@one,two/x").as_deref(), Some("first"));
    for url in ["one,evil/x", "evil,one/x", "one,three/x", "one:5432,two:5433/x"] {
        assert_eq!(password(&format!("postgres://ann@{url}")), None, "{url}");
    }
}

#[test]
fn the_password_is_known_as_the_server_gets_it() {
    for url in ["postgres://ann:open%20sesame@db/x", "postgres://ann@db/x?password=open%20sesame"] {
        assert_eq!(DatabaseAddress::parse(url).unwrap().password().as_deref(), Some("open sesame"), "{url}");
    }
}

#[test]
fn a_password_file_that_others_can_read_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "*:*:*:*:sesame\n").unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();

    let refused = DatabaseAddress::parse("postgres://ann@db/longhaul").unwrap().password_in(file.path());

    let error = refused.unwrap_err().to_string();
    assert!(error.contains("chmod 600") && !error.contains("sesame"), "{error}");
}

/// N4: a network that swallows packets is noticed within half a minute, also by a statement that only waits for its answer.
#[test]
fn a_silent_connection_is_given_up_within_half_a_minute() {
    let config = DatabaseAddress::parse("postgres://u@db.example/d").unwrap().config;

    let probes = config.get_keepalives_interval().unwrap() * config.get_keepalives_retries().unwrap();

    assert!(config.get_keepalives() && config.get_keepalives_idle() + probes <= Duration::from_secs(30));
}
