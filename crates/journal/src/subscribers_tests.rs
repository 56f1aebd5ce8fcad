use std::time::Duration;

use longhaul_protocol::StreamName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{MAX_LINE_BYTES, Subscriber, Subscription};

async fn rest(subscription: &mut Subscription) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(line) = subscription.next().await {
        lines.push(line);
    }
    lines
}

#[tokio::test]
async fn lines_come_whole_however_they_are_cut() {
    let text = "one\n\ntwo ü\n\n\nthree\n";
    for size in 1..=text.len() {
        let (mut pipe, mut subscription) = Subscription::piped();
        let writing = async {
            for part in text.as_bytes().chunks(size) {
                pipe.write_all(part).await.unwrap();
                tokio::task::yield_now().await;
            }
            drop(pipe);
        };

        let ((), lines) = tokio::join!(writing, rest(&mut subscription));

        assert_eq!(lines, ["one", "two ü", "three"], "parts of {size} bytes");
    }
}

#[tokio::test]
async fn a_read_that_is_given_up_loses_nothing() {
    let (mut pipe, mut subscription) = Subscription::piped();
    for part in ["be", "gun and ", "en", "ded\nne"] {
        assert!(tokio::time::timeout(Duration::from_millis(1), subscription.next()).await.is_err());
        pipe.write_all(part.as_bytes()).await.unwrap();
    }
    assert_eq!(subscription.next().await.as_deref(), Some("begun and ended"));
    pipe.write_all(b"xt\nlast\ncut").await.unwrap();
    assert_eq!(subscription.next().await.as_deref(), Some("next"));
    assert_eq!(subscription.next_received(), Some(Some("last".to_owned())));
    assert_eq!(subscription.next_received(), None);
    drop(pipe);
    assert_eq!(subscription.next().await, None);
}

/// Whatever answers at the address of another node, it can't fill the memory or pass bytes for lines.
#[tokio::test]
async fn what_sends_no_lines_is_disconnected() {
    let (mut pipe, mut subscription) = Subscription::piped();
    pipe.write_all(b"fine\n\xff\xfe\n").await.unwrap();
    assert_eq!(subscription.next().await.as_deref(), Some("fine"));
    assert_eq!(subscription.next().await, None);

    let mut endless = Subscription::new(tokio::io::repeat(b'x'));
    assert_eq!(endless.next().await, None);
    assert!(endless.buffer.capacity() < 3 * MAX_LINE_BYTES);
}

#[tokio::test]
async fn each_end_sees_that_the_other_has_gone() {
    let (mut subscriber, subscription) = Subscriber::pair(StreamName::host());
    assert!(subscriber.tell("a line\n").await);
    drop(subscription);
    subscriber.hung_up().await;
    assert!(!subscriber.tell("another\n").await);

    let (subscriber, mut subscription) = Subscriber::pair(StreamName::host());
    drop(subscriber);
    assert_eq!(subscription.next().await, None);

    let (mut pipe, subscription) = Subscription::piped();
    drop(subscription);
    assert_eq!(pipe.read(&mut [0]).await.unwrap(), 0);
}
