import MartletIngest
import Testing

@Suite struct IngestConfigurationTests {
    private func problems(_ topics: [TableMapping]) -> [String] {
        var configuration = IngestConfiguration()
        configuration.topics = topics
        return configuration.validate()
    }

    @Test func nothingIsIngestedByDefault() {
        #expect(IngestConfiguration().topics == [])
        #expect(IngestConfiguration().validate() == [])
    }

    @Test func mappingsThatFitAreAccepted() {
        #expect(
            problems([
                TableMapping(topic: "pg.public.product", table: "product"),
                TableMapping(topic: "my.shop.product", table: "product", columns: ["id": "id", "name": "title"]),
            ]) == [])
    }

    @Test(arguments: ["a b", "größe", "a/b", ".", "..", String(repeating: "t", count: 250)])
    func aTopicHasANameThatKafkaTakes(topic: String) {
        let problems = problems([TableMapping(topic: topic, table: "t")])
        #expect(problems.count == 1 && problems[0].hasPrefix("topics[0].topic: "))
    }

    @Test func everyProblemIsNamed() {
        #expect(
            problems([
                TableMapping(topic: "", table: ""),
                TableMapping(topic: "a", table: "t", columns: [:]),
                TableMapping(topic: "a", table: "t", columns: ["": "x", "b": "y"]),
                TableMapping(topic: "b", table: "t", columns: ["a": "X", "b": "x", "c": "y"]),
            ]) == [
                "topics[0].topic: is empty",
                "topics[0].table: is empty",
                "topics[1].columns: is empty; leave it out to take all columns",
                "topics[2].columns: has an empty name",
                "topics[3].columns: more than one column goes to X",
                "topics: a is there more than once",
            ])
    }
}
