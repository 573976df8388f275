import Foundation
import MartletCore
import MartletIngest
import Testing

/// Which of two records comes later in the log of the source.
@Suite struct SourcePositionTests {
    private func position(_ source: String) throws -> SourcePosition? {
        let decoder = RecordDecoder(mapping: TableMapping(topic: "t", table: "t"), types: ["id": "INTEGER"])
        let value = RecordText.envelope("c", after: #"{"id":1}"#, source: source)
        return try decoder.decode(key: #"{"id":1}"#, value: value)?.position
    }

    private func postgreSQL(_ sequence: String, lsn: Int64 = 1) throws -> SourcePosition {
        let text = sequence.replacing(#"""#, with: #"\""#)
        return try #require(try position(#"{"connector":"postgresql","sequence":"\#(text)","lsn":\#(lsn)}"#))
    }

    private func mySQL(_ file: String, _ pos: Int, _ row: Int = 0, gtid: String? = nil) throws -> SourcePosition {
        let gtid = gtid.map { #""\#($0)""# } ?? "null"
        return try #require(
            try position(
                #"{"connector":"mysql","gtid":\#(gtid),"file":"\#(file)","pos":\#(pos),"row":\#(row)}"#))
    }

    /// Each position comes after those before it, and not after itself or those behind it.
    private func expectAscending(_ positions: [SourcePosition]) {
        for (a, first) in positions.enumerated() {
            for (b, second) in positions.enumerated() {
                #expect(second.isAfter(first) == (b > a), "\(a), \(b)")
            }
        }
    }

    /// A long transaction that is committed late has changes at lower places than those of shorter ones before it.
    @Test func changesOfPostgreSQLFollowCommits() throws {
        expectAscending([
            try postgreSQL(#"[null,"5"]"#), try postgreSQL(#"[null,"900"]"#), try postgreSQL(#"["100","150"]"#),
            try postgreSQL(#"["200","120"]"#), try postgreSQL(#"["200","121"]"#),
            try postgreSQL(#"["18446744073709551614","18446744073709551615"]"#),
        ])
    }

    @Test func withoutASequenceThePlaceOfTheChangeCounts() throws {
        #expect(
            try position(#"{"connector":"postgresql","lsn":24023128}"#)
                == SourcePosition(log: "postgresql", numbers: [0, 24_023_128]))
        for sequence in ["", "x", "[]", #"[\"1\"]"#, #"[\"1\",\"-2\"]"#, #"[\"1\",null]"#, "[[]]"] {
            #expect(
                try position(#"{"connector":"postgresql","sequence":"\#(sequence)","lsn":7}"#)
                    == SourcePosition(log: "postgresql", numbers: [0, 7]))
        }
    }

    @Test func changesOfMySQLFollowFilePositionAndRow() throws {
        expectAscending([
            try mySQL("binlog.000009", 900, 5), try mySQL("binlog.000010", 4), try mySQL("binlog.000010", 4, 1),
            try mySQL("binlog.000010", 30), try mySQL("binlog.1000000", 4),
        ])
    }

    /// The new server has other files and positions.
    @Test func transactionsWithAnIDKeepTheirOrderAfterAFailover() throws {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
        expectAscending([
            try mySQL("a.000009", 900, gtid: "\(uuid):9"), try mySQL("b.000001", 4, gtid: "\(uuid):10"),
            try mySQL("b.000001", 4, 1, gtid: "\(uuid):10"), try mySQL("a.000001", 4, gtid: "\(uuid):11"),
        ])
        // MariaDB: domain, server, transaction.
        expectAscending([
            try mySQL("a.000009", 900, gtid: "0-1-9"), try mySQL("b.000001", 4, gtid: "0-2-10"),
        ])
    }

    @Test func differentLogsAreNotCompared() throws {
        let positions = [
            try postgreSQL(#"["1","1"]"#), try mySQL("a.000001", 1), try mySQL("b.000001", 1),
            try mySQL("a.000001", 1, gtid: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1"),
            try mySQL("a.000001", 1, gtid: "4e11fa47-71ca-11e1-9e33-c80aa9429562:1"),
            try mySQL("a.000001", 1, gtid: "4e11fa47-71ca-11e1-9e33-c80aa9429562:tag:1"),
            try mySQL("a.000001", 1, gtid: "0-1-1"), try mySQL("a.000001", 1, gtid: "1-1-1"),
        ]
        for (a, first) in positions.enumerated() {
            for (b, second) in positions.enumerated() where a != b {
                #expect(!first.isAfter(second) && first != second, "\(a), \(b)")
            }
        }
    }

    @Test(arguments: [
        "null", "{}", "7", #"{"connector":"sqlserver","sequence":"[\"1\",\"2\"]"}"#, #"{"connector":"postgresql"}"#,
        #"{"connector":"mysql","file":"binlog.000001"}"#, #"{"connector":"mysql","file":"binlog","pos":4}"#,
        #"{"connector":"mysql","file":"binlog.000001","pos":-4}"#, #"{"connector":"mysql","pos":4}"#,
        #"{"connector":"mysql","file":"binlog.99999999999999999999","pos":4}"#,
        #"{"connector":"mysql","file":"binlog.000001","pos":4,"gtid":"x"}"#,
        #"{"connector":"martlet","sequence":"17"}"#, #"{"connector":"yugabytedb","lsn":"1:2::0:0"}"#,
    ])
    func aSourceMayHaveNoPosition(source: String) throws {
        #expect(try position(source) == nil)
    }

    @Test func aPositionSurvivesBeingStored() throws {
        for position in [try postgreSQL(#"["1","18446744073709551615"]"#), try mySQL("a.000001", 1)] {
            let stored = try JSONEncoder().encode(position)
            #expect(try JSONDecoder().decode(SourcePosition.self, from: stored) == position)
        }
    }
}
