import MartletKafka
import MartletSync
import MartletTestSupport
import Testing

@Suite struct FetchWaitTests {
    private func request(version: Int16, wait: Int32) -> [UInt8] {
        var bytes: [UInt8] = [0, 3] + Array("abc".utf8)
        if version >= 12 { bytes.append(0) }
        if version < 15 { bytes += [0xff, 0xff, 0xff, 0xff] }
        return bytes + withUnsafeBytes(of: wait.bigEndian) { Array($0) } + [9, 9, 9]
    }

    @Test(arguments: [4, 11, 12, 14, 15, 16] as [Int16]) func aLongWaitIsLimited(version: Int16) {
        var long = request(version: version, wait: 60_000)
        FetchWait.limit(in: &long, version: version)
        #expect(long == request(version: version, wait: FetchWait.limit))
        var short = request(version: version, wait: 7)
        FetchWait.limit(in: &short, version: version)
        #expect(short == request(version: version, wait: 7))
    }

    @Test func requestsOtherThanFetchesStayUnchanged() {
        #expect(FetchWait.header(of: [0, 0, 0, 99, 0, 3, 0, 9, 0, 0, 0, 1], size: 99) == nil)
        #expect(
            FetchWait.header(of: [0, 0, 0, 99, 0, 1, 0, 11, 0, 0, 0, 1], size: 99).map { [Int($0), $1] } == [11, 91])
        // The wait ends with the thirteenth byte.
        for count in 0..<13 {
            let cut = Array(request(version: 11, wait: 60_000).prefix(count))
            var limited = cut
            FetchWait.limit(in: &limited, version: 11)
            #expect(limited == cut)
        }
    }

    /// librdkafka writes the wait at the expected position: a message arrives long before the wait is over.
    @Test func aMessageEndsTheWaitOnAFixedPort() throws {
        let (broker, port) = try onFreePort()
        var configuration = KafkaConfiguration(bootstrapServers: ["127.0.0.1:\(port)"])
        configuration.fetchWaitMax = BusContract.deadline * 2
        let bus = try KafkaBus(configuration)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        #expect(try consumer.poll(maxCount: 1, timeout: BusContract.deadline).events.count == 1)
        try BusSession.send(BusSession.messages(keys: 1, each: 1), to: bus)
        #expect(try BusSession.read(consumer, count: 1).count == 1)
        withExtendedLifetime(broker) {}
    }

    private func onFreePort() throws -> (EmbeddedBroker, UInt16) {
        for _ in 0..<100 {
            let port = UInt16.random(in: 20_000..<32_000)
            if let broker = try? EmbeddedBroker(port: port, topics: ["martlet": 1]) { return (broker, port) }
        }
        throw BusContractError("no port is free")
    }
}
