use super::{Line, LineReader};

async fn lines(input: &[u8], max_bytes: usize) -> Vec<Line> {
    let mut reader = LineReader::new(input, max_bytes);
    let mut lines = Vec::new();
    while let Some(line) = reader.next().await.unwrap() {
        lines.push(line);
    }
    lines
}

/// E3, E6.
#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
    let input = [b"one\n".to_vec(), b"x".repeat(100), b"\n\n  \r\ntwo".to_vec()].concat();

    let read = lines(&input, 10).await;

    assert_eq!(read, [Line::Text(b"one".to_vec()), Line::TooLong, Line::Text(b"two".to_vec())]);
}

#[tokio::test]
async fn a_line_of_exactly_the_longest_length_is_read() {
    assert_eq!(lines(b"12345\n", 5).await, [Line::Text(b"12345".to_vec())]);
    assert_eq!(lines(b"123456\n", 5).await, [Line::TooLong]);
    assert_eq!(lines(b"123456", 5).await, [Line::TooLong]);
}
