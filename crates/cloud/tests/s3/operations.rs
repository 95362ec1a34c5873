//! All requests, against s3s-fs.

use std::fs;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use snowmelt_cloud::{CloudOptions, Credentials, conditional_puts_work, open};
use snowmelt_io::{Answer, Ask, Clock, ObjectErrorKind, PutIf, Version};

use crate::server::{KEY, SECRET, Server};
use crate::{asked, get, keys, objects, put};

#[test]
fn objects_are_put_got_and_deleted() {
    let server = Server::start();
    let part = objects(&server.options(), "a/b");
    assert_eq!(&**part.name(), "s3://data/a/b");
    let bytes: Vec<u8> = (0..3 << 20).map(|i: u32| (i % 251) as u8).collect();
    let version = put(&*part, "c/d 1%~ä+", &bytes, PutIf::Always).unwrap();
    assert!(server.bucket().join("a/b/c/d 1%~ä+").exists());
    let whole = get(&*part, "c/d 1%~ä+", None).unwrap();
    assert!(whole == (bytes.clone(), bytes.len() as u64, version.clone()));
    let (some, object_bytes, same) = get(&*part, "c/d 1%~ä+", Some(1000..2_000_001)).unwrap();
    assert!(some == bytes[1000..2_000_001]);
    assert_eq!((object_bytes, &same), (bytes.len() as u64, &version));
    assert_eq!(get(&*part, "c/d 1%~ä+", Some(5..6)).unwrap().0, [5]);

    let other = put(&*part, "c/d 1%~ä+", b"", PutIf::Always).unwrap();
    assert_ne!(other, version);
    assert_eq!(get(&*part, "c/d 1%~ä+", None).unwrap(), (Vec::new(), 0, other));

    let delete = || Ask::Delete { key: "c/d 1%~ä+".into() };
    assert_eq!(asked(&*part, delete()), Ok(Answer::Deleted));
    assert_eq!(asked(&*part, delete()), Ok(Answer::Deleted), "what is not there is deleted already");
    assert_eq!(get(&*part, "c/d 1%~ä+", None), Err(ObjectErrorKind::Missing));
    assert_eq!(get(&*part, "c/d 1%~ä+", Some(0..1)), Err(ObjectErrorKind::Missing));
}

#[test]
fn ranges_beyond_the_end_are_short() {
    let server = Server::start();
    let part = objects(&server.options(), "");
    put(&*part, "a", b"0123456789", PutIf::Always).unwrap();
    assert_eq!(get(&*part, "a", Some(8..10)).unwrap().0, b"89");
    assert_eq!(get(&*part, "a", Some(8..11)), Err(ObjectErrorKind::Short { got: 2, wanted: 3 }));
    assert_eq!(get(&*part, "a", Some(10..15)), Err(ObjectErrorKind::Short { got: 0, wanted: 5 }));
    assert_eq!(get(&*part, "a", Some(100..105)), Err(ObjectErrorKind::Short { got: 0, wanted: 5 }));
}

#[test]
fn puts_obey_their_conditions() {
    let server = Server::start();
    let part = objects(&server.options(), "");
    let unknown = Version("\"0123\"".into());
    assert_eq!(put(&*part, "a", b"0", PutIf::Is(unknown.clone())), Err(ObjectErrorKind::Changed));
    let first = put(&*part, "a", b"1", PutIf::Absent).unwrap();
    assert_eq!(put(&*part, "a", b"2", PutIf::Absent), Err(ObjectErrorKind::Changed));
    assert_eq!(put(&*part, "a", b"2", PutIf::Is(unknown)), Err(ObjectErrorKind::Changed));
    let second = put(&*part, "a", b"2", PutIf::Is(first.clone())).unwrap();
    assert_eq!(put(&*part, "a", b"3", PutIf::Is(first)), Err(ObjectErrorKind::Changed));
    assert_eq!(get(&*part, "a", None).unwrap(), (b"2".to_vec(), 1, second));
    let no_name = PutIf::Is(Version("a\nb".into()));
    assert!(matches!(put(&*part, "a", b"4", no_name), Err(ObjectErrorKind::Invalid(_))));
    conditional_puts_work(&*part, &Clock::real(), "x/").unwrap();
    assert_eq!(keys(&*part, "", None, 10).unwrap(), ["a"], "the check leaves nothing");
}

#[test]
fn of_two_writers_one_is_refused() {
    let server = Server::start();
    let part = objects(&server.options(), "");
    let count = |version: &Version| {
        get(&*part, "n", None).map(|(bytes, _, now)| {
            assert_eq!(now, *version);
            String::from_utf8(bytes).unwrap().parse::<u32>().unwrap()
        })
    };
    put(&*part, "n", b"0", PutIf::Absent).unwrap();
    let refused: u32 = thread::scope(|scope| {
        let writers: Vec<_> = (0..2).map(|_| scope.spawn(|| increments(&server.options(), 20))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    let (_, _, version) = get(&*part, "n", None).unwrap();
    assert_eq!(count(&version).unwrap(), 40, "an increment was lost");
    eprintln!("{refused} puts were refused");
    assert!(refused > 0, "the writers never met");
}

/// Adds one so many times; returns how often it was refused.
fn increments(options: &CloudOptions, times: u32) -> u32 {
    let part = objects(options, "");
    let (mut done, mut refused) = (0, 0);
    while done < times {
        let (bytes, _, version) = get(&*part, "n", None).unwrap();
        let next = String::from_utf8(bytes).unwrap().parse::<u32>().unwrap() + 1;
        match put(&*part, "n", next.to_string().as_bytes(), PutIf::Is(version)) {
            Ok(_) => done += 1,
            Err(ObjectErrorKind::Changed) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    refused
}

#[test]
fn lists_have_pages() {
    let server = Server::start();
    let part = objects(&server.options(), "p");
    for i in 0..25 {
        put(&*part, &format!("k/{i:02}"), &vec![0; i], PutIf::Always).unwrap();
    }
    put(&*part, "k1", b"", PutIf::Always).unwrap();
    put(&*part, "j", b"", PutIf::Always).unwrap();
    put(&*objects(&server.options(), ""), "pk", b"", PutIf::Always).unwrap();
    assert_eq!(keys(&*part, "", None, 1000).unwrap().len(), 27);
    assert_eq!(keys(&*part, "k", None, 1000).unwrap().len(), 26, "no part of a key need be whole");
    assert_eq!(keys(&*part, "k/0", None, 1000).unwrap().len(), 10);
    assert_eq!(keys(&*part, "none", None, 1000).unwrap(), [""; 0]);
    assert_eq!(keys(&*part, "", None, 0).unwrap(), [""; 0]);
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = keys(&*part, "k/", after.as_deref(), 7).unwrap();
        assert!(page.len() <= 7);
        let Some(last) = page.last().cloned() else { break };
        after = Some(last);
        all.extend(page);
    }
    let expected: Vec<_> = (0..25).map(|i| format!("k/{i:02}")).collect();
    assert_eq!(all, expected);
    let listed = asked(&*part, Ask::List { prefix: "k/07".into(), after: None, most: 5 }).unwrap();
    let Answer::Listed(listed) = listed else { panic!("{listed:?}") };
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    assert_eq!(listed[0].bytes, 7);
    assert!(now_ms.abs_diff(listed[0].written_unix_ms) < 60_000, "{listed:?}");
}

#[test]
fn lists_are_longer_than_a_page_of_the_server() {
    let server = Server::start();
    fs::create_dir(server.bucket().join("p")).unwrap();
    for i in 0..2100 {
        fs::write(server.bucket().join(format!("p/{i:04}")), b"x").unwrap();
    }
    let part = objects(&server.options(), "p");
    let all = keys(&*part, "", None, 5000).unwrap();
    assert_eq!((all.len(), &*all[0], &*all[2099]), (2100, "0000", "2099"));
    let some = keys(&*part, "", Some("0099"), 1500).unwrap();
    assert_eq!((some.len(), &*some[0], &*some[1499]), (1500, "0100", "1599"));
}

#[test]
fn many_requests_are_on_their_way_at_once() {
    let server = Server::start();
    let part = objects(&server.options(), "");
    put(&*part, "a", b"0123456789", PutIf::Always).unwrap();
    let (sender, answers) = std::sync::mpsc::channel();
    let ongoing: Vec<_> = (0..300u64)
        .map(|i| {
            let sender = sender.clone();
            let get = Ask::Get { key: "a".into(), range: Some(i % 10..10) };
            part.begin(get, Box::new(move |answer| sender.send((i, answer)).unwrap()))
        })
        .collect();
    for _ in 0..300 {
        let (i, answer) = answers.recv().unwrap();
        let Answer::Got { bytes, .. } = answer.unwrap() else { panic!("not got") };
        assert_eq!(bytes, b"0123456789"[(i % 10) as usize..]);
    }
    drop(ongoing);
    drop(sender);
    assert!(answers.recv().is_err(), "each request is answered once");
}

#[test]
fn credentials_come_from_a_file_or_settings() {
    let server = Server::start();
    let path = server.bucket().with_file_name("credentials");
    let text = format!("[tests]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n");
    fs::write(&path, text).unwrap();
    let of_file = CloudOptions {
        credentials: Credentials::File { path, profile: Some("tests".to_owned()) },
        ..server.options()
    };
    put(&*objects(&of_file, ""), "a", b"1", PutIf::Always).unwrap();
    let of_settings = CloudOptions {
        settings: [("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET)]
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into(),
        credentials: Credentials::Ambient,
        ..server.options()
    };
    assert_eq!(get(&*objects(&of_settings, ""), "a", None).unwrap().0, b"1");
}

#[test]
fn keys_that_cannot_be_are_refused() {
    let server = Server::start();
    let part = open("s3://data", &server.options()).unwrap();
    for key in ["", "/a", "a//b", "a/../b", "a/"] {
        assert!(matches!(get(&*part, key, None), Err(ObjectErrorKind::Invalid(_))), "{key}");
    }
}
