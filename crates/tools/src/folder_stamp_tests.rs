use super::*;

#[test]
fn a_folder_whose_time_has_whole_seconds_settles_later() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let changed = |ago: u64, nanoseconds: i64| {
        let seconds = i64::try_from(now.as_secs() - ago).unwrap();
        FolderStamp { device: 1, inode: 1, seconds, nanoseconds }.is_settled()
    };

    assert_eq!([changed(0, 0), changed(1, 0), changed(4, 0)], [false, false, true]);
    assert_eq!([changed(0, 999_999_999), changed(2, 1)], [false, true]);
}
