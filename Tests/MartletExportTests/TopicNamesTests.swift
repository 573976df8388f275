import MartletExport
import Testing

@Suite struct TopicNamesTests {
    private let names = TopicNames(prefix: "shop")

    @Test func aTableHasATopicOfItsName() {
        #expect(names.table("order_line") == "shop.order_line")
        #expect(names.table("b-c") == "shop.b-c")
    }

    @Test(arguments: ["a b", "a?b", "a.b", "größe", "表", "", "a/b", "transaction", "export"])
    func otherNamesEndWithADigest(name: String) {
        let topic = names.table(name)
        #expect(topic.hasPrefix("shop."))
        #expect(topic != "shop.\(name)")
        #expect(topic.wholeMatch(of: #/[A-Za-z0-9._-]+_[0-9a-f]{16}/#) != nil)
    }

    @Test func namesThatDifferInOtherCharactersHaveTopicsOfTheirOwn() {
        let tables = ["a b", "a?b", "a_b", "a.b", "a/b", "ä b", "transaction", "export", "Transaction"]
        #expect(Set(tables.map(names.table)).count == tables.count)
        #expect(Set(tables.map(names.table)).isDisjoint(with: [names.transactions, names.lease]))
    }

    @Test func aLongNameFits() {
        let long = String(repeating: "n", count: 300)
        #expect(names.table(long).utf8.count == 249)
        #expect(names.table(long) != names.table(long + "n"))
    }

    @Test(arguments: ["", "a b", ".a", "größe", String(repeating: "p", count: 101)])
    func aPrefixIsPartOfATopic(prefix: String) {
        #expect(TopicNames.problem(ofPrefix: prefix) != nil)
    }

    @Test func theConfigurationRefusesWhatCantBe() {
        var configuration = ExportConfiguration()
        #expect(configuration.validate() == [])
        configuration.tables = ["a", ""]
        configuration.partitions = 0
        configuration.replicationFactor = 0
        configuration.leaseTimeout = .seconds(1)
        configuration.batchChanges = 0
        let fields = configuration.validate().map { String($0.prefix { $0 != ":" }) }
        #expect(fields == ["tables", "tables", "partitions", "replicationFactor", "leaseTimeout", "batchChanges"])
    }
}
