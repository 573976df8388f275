import ArgumentParser
import SampleTripsApp

/// Apart from the app, so that tests can use its models: they can't import the module of a program.
@main
struct Program {
    static func main() async { await SampleTripsCommand.main() }
}
