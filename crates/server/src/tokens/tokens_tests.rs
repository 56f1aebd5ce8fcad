use std::time::SystemTime;

use super::*;

fn store() -> TokenStore {
    let mut store = TokenStore::default();
    store.insert("laptop", Scope::Read, "one");
    store.insert("a.b", Scope::Admin, "two");
    store
}

/// H5: what is compared are hashes. A guess that shares all but its last character with a token has a hash that shares nothing, so
/// the time of the comparison, constant or not, says nothing about the token.
#[test]
fn a_token_is_found_by_its_whole_text_only() {
    let store = store();

    for (presented, found) in [
        ("one", Some("laptop")),
        ("two", Some("a.b")),
        ("on", None),
        ("onee", None),
        ("", None),
        ("ONE", None),
    ] {
        assert_eq!(store.find(presented).map(|token| token.name.clone()).as_deref(), found, "{presented}");
    }
    let (close, whole) = (blake3::hash(b"onf"), blake3::hash(b"one"));
    let same =
        close.as_bytes().iter().zip(whole.as_bytes()).take_while(|(left, right)| left == right).count();
    assert!(same < 4, "{same} bytes in common");
}

/// H5: a cookie ends with its time and with its token, and only the home that signed it knows it.
#[test]
fn a_cookie_counts_while_its_token_does_and_for_thirty_days() {
    let (key, store, now) = (CookieKey::derive(b"secret"), store(), SystemTime::now());
    let token = store.find("two").unwrap();
    let cookie = key.sign(&token, now);
    let days = |days: u64| now + Duration::from_secs(days * 24 * 60 * 60);
    let verified = |cookie: &str, at| key.verify(cookie, &store, at).map(|cookie| cookie.token.name.clone());

    assert_eq!(verified(&cookie, days(29)).as_deref(), Some("a.b"));
    assert_eq!(verified(&cookie, days(31)), None);
    let (expiry, rest) = cookie.split_once('.').unwrap();
    let later = expiry.parse::<u64>().unwrap() + 1;
    assert_eq!(verified(&format!("{later}.{rest}"), now), None, "the time can't be changed");
    assert_eq!(verified(&cookie.replace("a.b", "laptop"), now), None, "nor the token");
    let (id, rest) = rest.split_once('.').unwrap();
    assert_eq!(verified(&format!("{expiry}.{}.{rest}", id.to_lowercase()), now), None, "nor the id");
    assert!(CookieKey::derive(b"other").verify(&cookie, &store, now).is_none(), "nor the key");
    assert!(!cookie.contains("two"));
    for nonsense in ["", ".", "..", "1.2.3", "x.a.b.y", &"9".repeat(400)] {
        assert_eq!(verified(nonsense, now), None, "{nonsense}");
    }
    store.revoke(|token| token.name == "a.b");
    assert_eq!(verified(&cookie, now), None);
    assert!(token.is_revoked());
}

/// H5: the owner of a long token is not locked out by others who guess.
#[test]
fn a_given_token_is_guessable_only_if_it_is_short() {
    let mut store = TokenStore::default();
    let (short, long) = ("a".repeat(31), "b".repeat(32));
    store.insert("short", Scope::Admin, &short);
    store.insert("long", Scope::Admin, &long);

    assert!(store.find(&short).unwrap().is_guessable() && !store.find(&long).unwrap().is_guessable());
}

/// H5: what was signed out stays so for as long as it would count, and the list does not grow for ever.
#[test]
fn signed_out_cookies_are_remembered_until_they_expire() {
    let home = tempfile::tempdir().unwrap();
    let known = || SignedOutCookies::in_home(home.path());
    known().add(vec![("old".into(), 90), ("new".into(), 200)], 50).unwrap();
    let survived = ["old", "new", "other"].map(|id| known().contains(id));
    known().add(vec![], 100).unwrap();
    let later = ["old", "new"].map(|id| known().contains(id));
    let many: Vec<(String, u64)> = (0..10_100).map(|number| (number.to_string(), 1_000 + number)).collect();
    known().add(many, 100).unwrap();

    assert_eq!((survived, later), ([true, true, false], [false, true]));
    assert_eq!(["99", "101", "10099"].map(|id| known().contains(id)), [false, true, true]);
    let file = home.path().join("run/signed-out-cookies");
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&file.metadata().unwrap()) & 0o777, 0o600);
}
