use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

/// H5: 200 requests a second and a thousand followers at once are within the rate; a flood is not.
#[test]
fn ordinary_use_does_not_reach_the_rate_of_a_token() {
    let start = Instant::now();
    let mut bucket = RateBucket::new(start);

    let followers = (0..1_000).all(|_| bucket.take(RateLimit::REQUESTS, start).is_ok());
    let steady = (0..60_000)
        .all(|tick| bucket.take(RateLimit::REQUESTS, start + Duration::from_millis(tick * 5)).is_ok());
    let after = start + Duration::from_secs(300);
    let flood = (0..10_000).filter(|_| bucket.take(RateLimit::REQUESTS, after).is_ok()).count();

    assert!(followers && steady);
    assert_eq!(flood, 4_000);
    assert!(bucket.take(RateLimit::REQUESTS, after).is_err_and(|wait| wait <= Duration::from_millis(1)));
}

/// H5.
#[test]
fn an_address_with_many_wrong_tokens_has_to_wait_and_others_do_not() {
    let (start, address) = (Instant::now(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    let limiter = FailureLimiter::default();

    let refused = (0..100).filter(|_| limiter.count_failure(address, start).is_err()).count();

    assert_eq!(refused, 80);
    assert!(limiter.blocked(address, start).is_err());
    assert!(limiter.blocked(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), start).is_ok());
    assert!(limiter.blocked(address, start + Duration::from_secs(3)).is_ok());
}

/// H5: a host has all addresses of its IPv6 network, so that counts as one; the next network is another.
#[test]
fn addresses_of_one_ipv6_network_guess_together() {
    let (now, limiter) = (Instant::now(), FailureLimiter::default());
    let address =
        |network: u16, host: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, network, 0, 0, 0, host));

    let refused = (0..100).filter(|host| limiter.count_failure(address(1, *host), now).is_err()).count();

    assert_eq!(refused, 80);
    assert!(limiter.blocked(address(1, 5_000), now).is_err());
    assert!(limiter.blocked(address(2, 0), now).is_ok());
}
