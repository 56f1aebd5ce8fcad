use super::*;

const READ_TIMEOUT: Duration = Duration::from_secs(10);

async fn read_all(body: Body) -> Result<Vec<u8>, axum::Error> {
    axum::body::to_bytes(body, usize::MAX).await.map(|bytes| bytes.to_vec())
}

/// K9: what breaks off does not look complete.
#[tokio::test]
async fn a_body_that_breaks_off_fails_and_one_that_ends_does_not() {
    let (_shutdown, stopped) = watch::channel(false);
    let (mut whole, whole_body) = written_body(stopped.clone(), READ_TIMEOUT);
    let (mut broken, broken_body) = written_body(stopped, READ_TIMEOUT);

    whole.write(Bytes::from_static(b"all")).await.unwrap();
    drop(whole);
    broken.write(Bytes::from_static(b"half")).await.unwrap();
    broken.break_off();

    assert_eq!(read_all(whole_body).await.unwrap(), b"all");
    assert!(read_all(broken_body).await.is_err());
}
