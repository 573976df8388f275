import MartletKafka
import MartletSync
import MartletTestSupport
import Testing

@Suite struct BusContractTests {
    @Test(arguments: BusContract.rules)
    func inMemoryBusKeepsTheContract(_ rule: BusContract.Rule) throws {
        try rule.check(InMemoryBus(partitionCount: 3))
    }

    @Test(arguments: BusContract.rules)
    func kafkaBusKeepsTheContract(_ rule: BusContract.Rule) throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 3])
        try rule.check(try KafkaBus(.test(broker)))
    }
}
