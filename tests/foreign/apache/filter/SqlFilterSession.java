import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;

import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.filter.expression.ComparisonExpression;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.parser.SelectorParser;

/**
 * Evaluates SQL92 expressions by RocketMQ's own filter module. Each line of standard input is an expression and encoded
 * properties, in Base64, separated by a blank; each line of standard output is TRUE, FALSE, UNKNOWN, FAILED or ILLEGAL.
 *
 * An expression is illegal, too, if the parser has not come to its end: RocketMQ passes over the rest.
 */
public class SqlFilterSession {
    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.split(" ", -1);
            answers.println(answer(text(words[0]), MessageDecoder.string2messageProperties(text(words[1]))));
            answers.flush();
        }
    }

    private static String answer(String sql, Map<String, String> properties) {
        Expression expression;
        try {
            ComparisonExpression.CONVERT_STRING_EXPRESSIONS.set(true);
            SelectorParser parser = new SelectorParser(new StringReader(sql));
            expression = parser.JmsSelector();
            if (parser.getNextToken().kind != 0) {
                return "ILLEGAL";
            }
        } catch (Throwable e) {
            return "ILLEGAL";
        }
        try {
            Object value = expression.evaluate(new Properties(properties));
            return value == null ? "UNKNOWN" : value.toString().toUpperCase();
        } catch (Throwable e) {
            return "FAILED";
        }
    }

    private static String text(String base64) {
        return new String(Base64.getDecoder().decode(base64), StandardCharsets.UTF_8);
    }

    private record Properties(Map<String, String> map) implements EvaluationContext {
        @Override
        public Object get(String name) {
            return map.get(name);
        }

        @Override
        public Map<String, Object> keyValues() {
            return Map.copyOf(map);
        }
    }
}
